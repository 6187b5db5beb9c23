// The training loop on an objective of a few numbers: without libtorch.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/machine.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"
#include "train/around.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;

TrainOptions loop_options() {
  return {.epochs = 2,
          .minibatch_size = 4,
          .learning_rate = 0.1,
          .reference_batch_size = 8,
          .optimizer = {.momentum = 0.5},
          .cores = 3,
          .threads = 2};
}

Trainer tiny_trainer(const TrainOptions& options, const Trace& trace = trace_of({8, 16, 4})) {
  return Trainer(tiny_objective(), trace, options);
}

TEST(Loop, TakesTheThreadsThatTheProcessMayUse) {
  TrainOptions options = loop_options();
  options.threads = 0;
  EXPECT_EQ(tiny_trainer(options).threads(), cpus().usable());
}

TEST(Loop, Learns) {
  TrainOptions options = loop_options();
  options.epochs = 20;
  Trainer trainer = tiny_trainer(options);
  const auto recorder = test::recorded(trainer);
  ASSERT_EQ(recorder->epochs.size(), 20U);
  EXPECT_GT(recorder->epochs.front().test->loss, 0.1);
  EXPECT_LT(recorder->epochs.back().test->loss, 0.01);
}

// The gradient of every step.
class GradientsOfSteps final : public Observer {
 public:
  bool wants_gradients(const StepPlan&) const override { return true; }
  void on_gradients(Training&, const StepPlan&, std::span<const NamedArray> gradients) override {
    std::vector<double>& all = steps.emplace_back();
    for (const NamedArray& array : gradients) {
      const std::span<double> values = array.values<double>();
      all.insert(all.end(), values.begin(), values.end());
    }
  }

  std::vector<std::vector<double>> steps;
};

// AdaScaleEstimator::update_from_pair(), on what the steps have shown.
TEST(Loop, EstimatesNoiseFromPairsOfStepsOfOneMinibatch) {
  TrainOptions options = loop_options();
  options.reference_batch_size = 2;
  options.rule = "adascale";
  Trainer trainer = tiny_trainer(options, trace_of({4}));
  const auto recorder = trainer.add_observer<test::Recorder>();
  const auto gradients = trainer.add_observer<GradientsOfSteps>();
  trainer.fit();
  AdaScaleEstimator expected;
  ASSERT_EQ(recorder->steps.size(), 24U);
  for (std::size_t i = 0; i < recorder->steps.size(); ++i) {
    if (i > 0) {
      GradientNorms pair;
      for (std::size_t k = 0; k < gradients->steps[i].size(); ++k) {
        const double g = gradients->steps[i][k];
        const double p = gradients->steps[i - 1][k];
        pair.minibatch_square += (g * g + p * p) / 2;
        pair.mean_square += (g + p) * (g + p) / 4;
      }
      expected.update_from_pair(std::span(&pair, 1), 2);
    }
    EXPECT_NEAR(recorder->steps[i].gain, expected.gain(2), 1e-9) << i;
  }
  EXPECT_GT(recorder->steps.back().gain, 1);
  EXPECT_TRUE(trainer.state().has("gradient_of_previous_step"));
  options.rule = "linear";
  Trainer linear = tiny_trainer(options, trace_of({4}));
  linear.fit();
  EXPECT_FALSE(linear.state().has("gradient_of_previous_step")) << "it costs other rules nothing";
}

// Takes the base rate, and notes where the norms are those of two steps.
class PairsNoted final : public Rule {
 public:
  explicit PairsNoted(std::vector<bool>& pairs) : pairs_(pairs) {}
  [[nodiscard]] std::string_view name() const override { return "pairs-noted"; }
  [[nodiscard]] RuleNeeds needs() const override { return {.group_norms = true}; }
  [[nodiscard]] Rates rates(const RuleInput& input) override {
    pairs_.push_back(input.from_pair);
    return scaled(input, 1);
  }

 private:
  std::vector<bool>& pairs_;
};

RuleChoice noting(std::vector<bool>& pairs) {
  RuleRegistry rules;
  rules.add("pairs-noted", [&pairs](Spec&) { return std::make_unique<PairsNoted>(pairs); });
  return rules.choose("pairs-noted");
}

// A larger step lies between: its gradient is none of a minibatch, and the one before it was
// computed long ago.
TEST(Loop, MakesPairsOfStepsThatFollowEachOther) {
  std::vector<bool> pairs;
  TrainOptions options = loop_options();
  options.epochs = 1;
  options.rule = noting(pairs);
  Trainer trainer = tiny_trainer(options, trace_of({4, 4, 16, 4, 4, 4, 8, 4}));
  trainer.fit();
  EXPECT_THAT(pairs, ElementsAre(false, true, false, false, true, true, false, false));
}

// The last step has one sample of a minibatch of four: its gradient has another noise.
TEST(Loop, MakesNoPairWithAShortMinibatch) {
  std::vector<bool> pairs;
  TrainOptions options = loop_options();
  options.epochs = 1;
  options.remainder = Remainder::carry;
  options.rule = noting(pairs);
  Trainer trainer(test::tiny_objective(9), trace_of({4}), options);
  trainer.fit();
  EXPECT_THAT(pairs, ElementsAre(false, true, false));
}

// Each step's are its own: of what a core was busy with, its samples are a part.
TEST(Loop, HasTheSecondsOfEachStep) {
  TrainOptions options = loop_options();
  options.threads = 1;
  // Each minibatch gathers its samples for two milliseconds, and nothing else takes as long.
  auto slow = std::make_unique<test::Around>(
      [](auto& inner, const auto& minibatch, const auto& leaf, auto& progress) {
        progress.enter(Phase::data);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return inner.evaluate(minibatch, leaf, progress);
      });
  Trainer trainer(std::move(slow), trace_of({8, 16, 4}), options);
  const auto recorder = test::recorded(trainer);
  ASSERT_GT(recorder->steps.size(), 6U);
  for (const StepRecord& step : recorder->steps) {
    EXPECT_GE(step.seconds.data, 2e-3 * static_cast<double>(step.plan.minibatches));
    EXPECT_GE(step.seconds.compute, 0) << step.plan.index.value();
    EXPECT_LE(step.seconds.data, step.seconds.wall);
  }
}

// Threads, cores, reducers, assignments, deaths, turns, and a resume after every step.
TEST(Loop, HasTheSameBitsWhoeverComputes) {
  for (const char* rule : {"linear", "adascale", "lbsgd:warmup=lars"}) {
    TrainOptions options = loop_options();
    options.rule = rule;
    options.schedule = "cosine:total=2";
    options.optimizer.weight_decay = 0.01;
    options.groups = {no_decay_for_vectors()};
    options.lookahead.emplace().k = 3;
    options.rate_factors = {{"weight", 2}};
    options.ema_half_life = 30;
    options.log_noise = true;
    options.clip_value = 0.5;
    const auto make = [&](const auto& change) {
      TrainOptions changed = options;
      change(changed);
      // An epoch with pairs of steps of one minibatch, and one of a single step.
      return tiny_trainer(changed, trace_of({8, 4, 4, 20, 4, 48}));
    };
    EXPECT_EQ(test::difference_in_bits(make, 6), std::nullopt) << rule;
  }
}

// An evaluator that keeps something from one minibatch to the next is no function of the minibatch.
TEST(Loop, ShowsWhatAnEvaluatorKeeps) {
  const auto make = [&](const auto& change) {
    TrainOptions options = loop_options();
    change(options);
    auto keeping = std::make_unique<test::Around>(
        [calls = 0](auto& inner, const auto& minibatch, const auto& leaf, auto& progress) mutable {
          const double loss = inner.evaluate(minibatch, leaf, progress);
          leaf.gradient[0] += 1e-12 * static_cast<double>(++calls);
          return loss;
        });
    return Trainer(std::move(keeping), trace_of({8, 48, 4, 20}), options);
  };
  EXPECT_THAT(test::difference_in_bits(make, 4).value_or("none"),
              HasSubstr("differs first after step "));
  const std::vector<ExecutionOutcome> outcomes = verify(make, loop_options(), 4);
  EXPECT_TRUE(std::any_of(outcomes.begin(), outcomes.end(), [](const ExecutionOutcome& outcome) {
    return outcome.execution.what == "replicas in turns" && outcome.difference.has_value();
  }));
}

// People count from 1. The second step is in the second epoch: 8 + 48 samples do not fit into one.
TEST(Loop, SaysAfterWhichStepTrainingsDiffer) {
  const auto make = [&](const auto& change) {
    TrainOptions options = loop_options();
    change(options);
    const bool first_way = options.cores == 1 && options.threads == 1;
    // A little more in one slope, from the second epoch on.
    auto other = std::make_unique<test::Around>(
        [first_way](auto& inner, const auto& minibatch, const auto& leaf, auto& progress) {
          const double loss = inner.evaluate(minibatch, leaf, progress);
          if (!first_way && minibatch.stream.epoch >= 1) leaf.gradient[0] += 1e-6;
          return loss;
        });
    return Trainer(std::move(other), trace_of({8, 48, 4, 20}), options);
  };
  EXPECT_THAT(test::difference_in_bits(make, 4).value_or("none"),
              HasSubstr("differs first after step 2 in "));
}

TEST(Loop, IsVerifiedWithAResumeOnlyIfThereIsOne) {
  const auto resumes = [](std::int64_t steps) {
    std::int64_t count = 0;
    for (const Execution& execution : executions_to_compare(loop_options(), steps)) {
      EXPECT_EQ(execution.resume_after > 0, execution.what.starts_with("a resume"))
          << execution.what;
      if (execution.resume_after > 0) ++count;
    }
    return count;
  };
  EXPECT_EQ(resumes(1), 0);
  EXPECT_EQ(resumes(2), 2);
}

TEST(Loop, SaysWhatDiffersBetweenTwoTrainers) {
  Trainer one = tiny_trainer(loop_options());
  Trainer other = tiny_trainer(loop_options());
  EXPECT_EQ(test::difference_of(one, other), std::nullopt);
  other.parameters()[0].values<double>()[2] = 0.5;
  EXPECT_EQ(test::difference_of(one, other), "weight[2] is 0 and 0.5");
}

TEST(Loop, GoesOnFromAStateToTheSameEnd) {
  Trainer whole = tiny_trainer(loop_options());
  whole.fit();
  class Pause final : public Observer {
   public:
    void on_step(Training& training, const StepRecord& step) override {
      if (step.plan.index == StepIndex{1}) training.pause();
    }
  };
  Trainer first = tiny_trainer(loop_options());
  first.add_observer<Pause>();
  first.fit();
  Trainer second = tiny_trainer(loop_options());
  second.load_state(parse_state(state_bytes(first.state()), "the state"));
  EXPECT_EQ(second.result().steps, 2);
  second.fit();
  EXPECT_EQ(test::difference_of(whole, second), std::nullopt);
}

// What parameters() has at the end of each epoch, and what its steps change.
class Parameters final : public Observer {
 public:
  void on_step(Training& training, const StepRecord&) override { of_step = copy_of(training); }
  void on_epoch(Training& training, const EpochRecord& epoch) override {
    of_epoch = copy_of(training);
    test_losses.push_back(epoch.test->loss);
  }
  void between_steps(Training& training) override { saved.push_back(training.state()); }

  static std::vector<double> copy_of(const auto& training) {
    std::vector<double> all;
    for (const NamedArray& array : training.parameters()) {
      const auto values = array.values<double>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  std::vector<double> of_step;
  std::vector<double> of_epoch;
  std::vector<double> test_losses;
  std::vector<State> saved;
};

std::vector<double> parameters_in(const State& state) {
  std::vector<double> all;
  for (const auto& [name, array] : state.arrays()) {
    if (!name.starts_with("parameter.")) continue;
    const auto values = state.values<double>(name);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

const WatchedMetric kLossOfAverages("ema", Metric::test_loss);

// Averages the weights by the formula, in steps of any batch.
class Averaging final : public Observer {
 public:
  Averaging(std::vector<double> initial, double half_life)
      : average_(std::move(initial)), half_life_(half_life) {}
  void on_step(Training& training, const StepRecord& step) override {
    weights_ = Parameters::copy_of(training);
    const double rho = std::exp2(-static_cast<double>(step.plan.batch_size) / half_life_);
    for (std::size_t i = 0; i < average_.size(); ++i) {
      average_[i] = rho * average_[i] + (1 - rho) * weights_[i];
    }
  }
  void on_epoch(Training& training, const EpochRecord& epoch) override {
    ASSERT_TRUE(epoch.other_tests.contains("ema"));
    EXPECT_NE(epoch.other_tests.at("ema")->loss, epoch.test->loss);
    EXPECT_EQ(value_of(kLossOfAverages, epoch), epoch.other_tests.at("ema")->loss);
    training.with_weights("ema", [&] {
      expect_averages(training.parameters());
      const Evaluation again = training.objective().test(training.workers(), {}, "");
      EXPECT_EQ(again.loss, epoch.other_tests.at("ema")->loss);
    });
    EXPECT_EQ(Parameters::copy_of(training), weights_);
    ++epochs;
  }
  void expect_averages(std::span<const NamedArray> parameters) const {
    std::size_t i = 0;
    for (const NamedArray& array : parameters) {
      for (const double value : array.values<double>()) {
        EXPECT_NEAR(value, average_[i], 1e-12) << i;
        ++i;
      }
    }
  }

  int epochs = 0;

 private:
  std::vector<double> average_;
  double half_life_;
  std::vector<double> weights_;
};

// The averages change nothing else.
TEST(Loop, TestsAndShowsTheAveragesOfTheWeightsBesideThem) {
  constexpr double kHalfLife = 30;
  TrainOptions options = loop_options();
  Trainer without = tiny_trainer(options, trace_of({8, 16, 4, 8}));
  without.fit();
  EXPECT_TRUE(without.result().final_other_tests.empty());
  options.ema_half_life = kHalfLife;
  Trainer trainer = tiny_trainer(options, trace_of({8, 16, 4, 8}));
  const auto averaging = trainer.add_observer<Averaging>(Parameters::copy_of(trainer), kHalfLife);
  const auto best = trainer.add_observer<BestWeights>(kLossOfAverages);
  trainer.fit();
  EXPECT_EQ(averaging->epochs, options.epochs);
  EXPECT_EQ(parameters_in(trainer.state()), parameters_in(without.state()));
  ASSERT_TRUE(trainer.result().final_other_tests.contains("ema"));
  EXPECT_EQ(trainer.result().final_test->loss, without.result().final_test->loss);
  trainer.with_weights("ema", [&] { averaging->expect_averages(trainer.parameters()); });
  // The best weights by the test of averages are averages; here those of the last epoch.
  ASSERT_EQ(best->value(), trainer.result().final_other_tests.at("ema")->loss);
  averaging->expect_averages(best->parameters());

  // A state has them, and continues a result.
  Trainer loaded = tiny_trainer(options, trace_of({8, 16, 4, 8}));
  loaded.add_observer<BestWeights>(kLossOfAverages);
  loaded.load_state(parse_state(state_bytes(trainer.state()), "the state"));
  loaded.with_weights("ema", [&] { averaging->expect_averages(loaded.parameters()); });
  EXPECT_EQ(loaded.result().final_other_tests.at("ema")->loss,
            trainer.result().final_other_tests.at("ema")->loss);
}

// A resume needs the same half-life; a fork may have averages, which begin with the weights.
TEST(Loop, BindsAStateToItsAverages) {
  const auto paused_in = [](TrainOptions options) {
    Trainer trainer = tiny_trainer(options, trace_of({8, 16, 4, 8}));
    test::train_until(trainer, 3);
    return trainer.state();
  };
  const State without = paused_in(loop_options());
  TrainOptions options = loop_options();
  options.ema_half_life = 30;
  const State with = paused_in(options);
  Trainer refused = tiny_trainer(options, trace_of({8, 16, 4, 8}));
  EXPECT_THAT(error_of([&] { refused.load_state(without); }),
              HasSubstr("ema_half_life was nothing, is 30"));
  Trainer fork = tiny_trainer(options, trace_of({8, 16, 4, 8}));
  fork.fork(without);
  EXPECT_EQ(parameters_in(fork.state()), parameters_in(without));
  const auto averaging = fork.add_observer<Averaging>(Parameters::copy_of(fork), 30);
  fork.fit();
  EXPECT_GT(averaging->epochs, 0);
  Trainer dropped = tiny_trainer(loop_options(), trace_of({8, 16, 4, 8}));
  dropped.fork(with);
  dropped.fit();
  Trainer whole = tiny_trainer(loop_options(), trace_of({8, 16, 4, 8}));
  whole.fit();
  EXPECT_EQ(parameters_in(dropped.state()), parameters_in(whole.state()));
  EXPECT_EQ(dropped.state().arrays().contains("ema.weights"), false);
  options.ema_half_life = 0;
  EXPECT_THAT(error_of([&] { tiny_trainer(options, trace_of({8})); }),
              HasSubstr("a half-life of 0 samples"));
  options = loop_options();
  options.watch = kLossOfAverages;
  EXPECT_THAT(error_of([&] { tiny_trainer(options, trace_of({8})); }),
              HasSubstr("watch: ema-test-loss: no weights are averaged"));
}

// Tests and weights for others are those of the slow weights, steps and states those of the fast
// ones, which do not notice.
TEST(Loop, TestsAndShowsTheSlowWeightsOfLookahead) {
  const auto train = [](std::optional<LookaheadWeights> weights) {
    TrainOptions options = loop_options();
    if (weights) options.lookahead = LookaheadOptions{.k = 4, .weights = *weights};
    Trainer trainer = tiny_trainer(options, trace_of({8, 16, 4, 8}));
    auto observer = trainer.add_observer<Parameters>();
    trainer.fit();
    EXPECT_NE(trainer.result().steps % 4, 0) << "they do not meet in the last step";
    std::vector<double> shown;
    for (const NamedArray& array : trainer.parameters()) {
      const auto values = array.values<double>();
      shown.insert(shown.end(), values.begin(), values.end());
    }
    return std::pair(observer, std::pair(shown, trainer.state()));
  };
  const auto [fast, after_fast] = train(LookaheadWeights::fast);
  const auto [slow, after_slow] = train(LookaheadWeights::slow);
  EXPECT_EQ(slow->of_step, fast->of_step);
  EXPECT_EQ(fast->of_epoch, fast->of_step);
  EXPECT_EQ(after_fast.first, fast->of_step);
  EXPECT_NE(slow->of_epoch, slow->of_step);
  EXPECT_EQ(after_slow.first, slow->of_epoch);
  EXPECT_NE(slow->test_losses, fast->test_losses);
  ASSERT_EQ(slow->saved.size(), fast->saved.size());
  for (std::size_t i = 0; i < slow->saved.size(); ++i) {
    EXPECT_EQ(parameters_in(slow->saved[i]), parameters_in(fast->saved[i])) << i;
  }
  // Before, in and after fit() a state is the same.
  EXPECT_EQ(state_bytes(after_slow.second), state_bytes(slow->saved.back()));
  EXPECT_EQ(after_slow.second.values<double>("lookahead.slow")[0], after_slow.first[0]);
  Trainer loaded = tiny_trainer(
      [] {
        TrainOptions options = loop_options();
        options.lookahead = LookaheadOptions{.k = 4};
        return options;
      }(),
      trace_of({8, 16, 4, 8}));
  loaded.load_state(after_slow.second);
  EXPECT_EQ(loaded.parameters()[0].values<double>()[0], after_slow.first[0]);
  EXPECT_EQ(state_bytes(loaded.state()), state_bytes(after_slow.second));
}

TEST(Loop, RefusesAWeightThatSomeMinibatchesHave) {
  auto weighing = std::make_unique<test::Around>(
      [](auto& inner, const auto& minibatch, const auto& leaf, auto& progress) {
        if (minibatch.stream.minibatch == 1) *leaf.weight = 4;
        return inner.evaluate(minibatch, leaf, progress);
      });
  Trainer trainer(std::move(weighing), trace_of({16}), loop_options());
  EXPECT_EQ(
      error_of([&] { trainer.fit(); }),
      "the loss has a weight in 1 of the 4 minibatches of step 1 of the run; accepted: one in "
      "all of them, or none");
}

TEST(Loop, RefusesTheStateOfOtherData) {
  Trainer trainer = tiny_trainer(loop_options());
  trainer.fit();
  const State state = trainer.state();
  Trainer other(tiny_objective(48, 2), trace_of({8, 16, 4}), loop_options());
  EXPECT_THAT(error_of([&] { other.load_state(state); }), HasSubstr("not the data of the run"));
}

// LARS divides by the norm of the gradient; were it that of the sum, it would cancel the sum.
TEST(Loop, LarsFollowsARuleThatSumsGradients) {
  const auto weights_of = [](const char* rule, std::optional<double> clip_value) {
    TrainOptions options = loop_options();
    options.epochs = 4;
    options.rule = rule;
    options.optimizer = {.method = LarsOptions{.trust = 0.2}, .weight_decay = 0.1};
    options.clip_value = clip_value;
    Trainer trainer = tiny_trainer(options);
    trainer.fit();
    const auto values = trainer.parameters()[0].values<double>();
    return std::vector<double>(values.begin(), values.end());
  };
  // Without momentum, a sum at the rate of one minibatch is the mean at the linear rule's.
  for (const std::optional<double> clip : {std::optional<double>(), std::optional(0.05)}) {
    const auto linear = weights_of("linear", clip);
    EXPECT_THAT(weights_of("linear-momentum", clip), Pointwise(DoubleNear(1e-12), linear));
    EXPECT_THAT(weights_of("constant", clip), Not(Pointwise(DoubleNear(1e-5), linear)));
  }
}

TEST(Loop, RefusesWhatItCannotTrain) {
  EXPECT_EQ(error_of([] { Trainer(nullptr, trace_of({8}), loop_options()); }),
            "a trainer needs an objective; accepted: any but null");
  TrainOptions adam = loop_options();
  adam.rule = "linear-momentum";
  adam.optimizer = {.method = AdamOptions{}};
  EXPECT_EQ(error_of([&] { tiny_trainer(adam); }),
            "rule: linear-momentum sums gradients, which the optimizer cannot follow; accepted: "
            "optimizer sgd or lars");
  TrainOptions own = loop_options();
  own.own_optimizer.of_float = [](const OptimizerParts&) {
    return std::unique_ptr<FlatOptimizer<float>>();
  };
  EXPECT_EQ(error_of([&] { tiny_trainer(own); }),
            "own_optimizer makes none for parameters of type F64");
}

// Moves against the sign of the gradient.
class SignOptimizer final : public FlatOptimizer<double> {
 public:
  void step(const Update<double>& update, Workers& workers) override {
    static_cast<void>(workers);
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const double gradient = update.gradient_sum[i];
      update.parameters[i] -= gradient > 0 ? 0.25 : gradient < 0 ? -0.25 : 0;
    }
  }
  void visit_state(StateVisitor& state) override { static_cast<void>(state); }
};

TEST(Loop, TakesAnOptimizerOfTheUsersOwn) {
  TrainOptions options = loop_options();
  options.epochs = 1;
  std::vector<std::size_t> ends;
  options.own_optimizer.of_double = [&](const OptimizerParts& parts) {
    ends = parts.layout.layer_ends;
    EXPECT_EQ(parts.trained[0].array.name, "weight");
    EXPECT_EQ(parts.groups.size(), 1U);
    return std::make_unique<SignOptimizer>();
  };
  Trainer trainer = tiny_trainer(options, trace_of({48}));
  trainer.fit();
  EXPECT_THAT(ends, ElementsAre(3, 4));
  for (const double weight : trainer.parameters()[0].values<double>()) {
    EXPECT_EQ(std::abs(weight), 0.25);
  }
}

TEST(Loop, SaysWhereAnObjectiveFailed) {
  const auto train = [](const std::function<void()>& fail) {
    auto failing = std::make_unique<test::Around>(
        [fail](auto&, const auto& minibatch, const auto&, auto& progress) {
          progress.enter(Phase::backward);
          if (minibatch.stream.step == 1 && minibatch.stream.minibatch == 3) fail();
          return 1.0;
        });
    Trainer(std::move(failing), trace_of({8, 16, 4}), loop_options()).fit();
  };
  EXPECT_EQ(error_of([&] { train([] { throw std::runtime_error("it is so"); }); }),
            "backward of minibatch 2 of 4 at epoch 1, step 2 of the run: it is so");
  EXPECT_THROW(train([] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace
}  // namespace rubato
