// What a user plugs into the trainer: reducers, gradient transforms and samplers, as in
// docs/extending.md.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"
#include "train/plug_points.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;

TrainOptions extended_options() {
  return {.epochs = 2,
          .minibatch_size = 4,
          .learning_rate = 0.05,
          .reference_batch_size = 8,
          .optimizer = {.momentum = 0.5},
          .cores = 3,
          .threads = 2};
}

// An epoch of the 48 samples.
Trace extended_trace() {
  return trace_of({8, 24, 4, 12});
}

using Change = std::function<void(TrainOptions&)>;

// Trainers of options that `extend` has changed.
MakeTrainer maker_of(const Change& extend) {
  return [extend](const Change& change) {
    TrainOptions options = extended_options();
    extend(options);
    change(options);
    return Trainer(tiny_objective(), extended_trace(), options);
  };
}

Trainer trainer_with(const Change& extend) {
  return maker_of(extend)([](TrainOptions&) {});
}

Trainer trained(const Change& extend) {
  Trainer trainer = trainer_with(extend);
  trainer.fit();
  return trainer;
}

// What a trainer with `loading` says of a state of one with `saved`.
std::string error_loading(const Change& saved, const Change& loading) {
  const State state = trained(saved).state();
  return error_of([&] { trainer_with(loading).load_state(state); });
}

std::optional<std::string> bits_that_differ(const Change& extend) {
  return test::difference_in_bits(maker_of(extend), 8);
}

// --- reducers ---

TEST(OwnReducer, ThatIsExactIsTheSameBits) {
  for (const char* rule : {"linear", "adascale"}) {
    const auto with = [rule](TrainOptions& options) {
      options.rule = rule;
      options.own_reducer = test::pairwise();
    };
    EXPECT_EQ(bits_that_differ(with), std::nullopt) << rule;
    for (const ExecutionOutcome& outcome : verify(maker_of(with), extended_options(), 6)) {
      EXPECT_EQ(outcome.difference, std::nullopt) << outcome.execution.what;
    }
  }
}

// Adds one leaf after the other.
template <class T>
class RunningSum : public Reducer<T> {
 public:
  explicit RunningSum(const ReducerSize& size) : Reducer<T>(size) {}
  void begin_step(std::int64_t, std::int64_t) override { sum_ = nullptr; }
  void reduce_core(std::int64_t, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    for (std::int64_t i = 0; i < share.count; ++i) {
      PartialSum<T>* const leaf = next(share[i]);
      const std::scoped_lock lock(mutex_);
      sum_ = sum_ == nullptr ? leaf : this->merge(sum_, leaf);
    }
  }
  PartialSum<T>* finish_step() override {
    sum_->take_squares(this->norms());
    return sum_;
  }

 protected:
  PartialSum<T>* sum_ = nullptr;

 private:
  std::mutex mutex_;
};

OwnReducer running_sum(bool reproducible) {
  return {.name = "running",
          .reproducible = reproducible,
          .of_double = [](const ReducerSize& size, Workers&) {
            return std::make_unique<RunningSum<double>>(size);
          }};
}

TEST(OwnReducer, IsUsed) {
  bool made = false;
  trained([&](TrainOptions& options) {
    options.own_reducer = test::pairwise();
    options.own_reducer.of_double = [&](const ReducerSize& size, Workers& workers) {
      made = true;
      EXPECT_EQ(size.max_leaves, 6);
      EXPECT_EQ(size.values, 5U) << "four parameters and a mean";
      EXPECT_EQ(workers.threads(), 2);
      return std::make_unique<test::PairwiseReducer<double>>(size);
    };
  });
  EXPECT_TRUE(made);
}

TEST(OwnReducer, ThatBreaksItsPromiseIsFound) {
  TrainOptions asked = extended_options();
  asked.own_reducer = running_sum(true);
  const auto outcomes = verify(
      maker_of([](TrainOptions& options) { options.own_reducer = running_sum(true); }), asked, 6);
  EXPECT_THAT(outcomes[1].difference.value_or("none"), HasSubstr("differs first after step "));
}

TEST(OwnReducer, MustPromiseExactnessWhereItIsWanted) {
  EXPECT_THAT(
      error_of([] { trained([](auto& o) { o.own_reducer = running_sum(false); }); }),
      HasSubstr("reduce: running does not promise the same bits for every number of threads "
                "and cores; accepted: exact=false, or OwnReducer::reproducible"));
  EXPECT_EQ(error_of([] {
              trained([](auto& o) {
                o.own_reducer = running_sum(false);
                o.exact = false;
              });
            }),
            "no error");
}

// A state of a reducer that is not reproducible is bound to it; one of a reproducible one is not.
TEST(OwnReducer, BindsAStateWhereItIsNotExact) {
  const auto inexact = [](TrainOptions& options) {
    options.own_reducer = running_sum(false);
    options.exact = false;
  };
  const auto none = [](TrainOptions&) {};
  const auto reproducible = [](TrainOptions& options) { options.own_reducer = test::pairwise(); };
  EXPECT_EQ(error_loading(reproducible, none), "no error");
  EXPECT_EQ(error_loading(none, reproducible), "no error");
  EXPECT_EQ(error_loading(inexact, inexact), "no error");
  EXPECT_THAT(error_loading(inexact, none), HasSubstr("reducer was running, is nothing"));
  EXPECT_THAT(error_loading(none, inexact), HasSubstr("reducer was nothing, is running"));
}

TEST(OwnReducer, IsRefusedWhereItCannotBeUsed) {
  const auto error = [](const Change& change) {
    return error_of([&] {
      trained([&](TrainOptions& options) {
        options.own_reducer = test::pairwise();
        change(options);
      });
    });
  };
  EXPECT_EQ(error([](auto& o) { o.own_reducer.of_double = nullptr; }),
            "reducer pairwise is made for no parameters of type F64");
  EXPECT_EQ(error([](auto& o) { o.reduce = "tree"; }),
            "reducer tree and own_reducer pairwise; accepted: one of them");
  EXPECT_EQ(error([](auto& o) { o.own_reducer.name = ""; }),
            "a reducer is called ''; accepted: a name of one line without /");
  EXPECT_THAT(error([](auto& o) {
                o.own_reducer.buffers = [](const ReducerSize& size, std::int64_t cores,
                                           int threads) {
                  EXPECT_EQ(size.max_leaves, 6);
                  EXPECT_EQ(cores, 3);
                  EXPECT_EQ(threads, 2);
                  return std::int64_t{1} << 60;
                };
              }),
              HasSubstr("1152921504606846976 gradient buffers of 40 bytes (6 minibatches in a "
                        "step, reducer pairwise)"));
}

// Leaves something out of the sum from the third step on.
class Forgetful final : public RunningSum<double> {
 public:
  enum class Forgets { everything, a_leaf, squares };

  Forgetful(const ReducerSize& size, Forgets forgets) : RunningSum(size), forgets_(forgets) {}
  void begin_step(std::int64_t leaves, std::int64_t cores) override {
    ++steps_;
    RunningSum::begin_step(leaves, cores);
  }
  PartialSum<double>* finish_step() override {
    RunningSum::finish_step();
    if (steps_ < 3) return sum_;
    if (forgets_ == Forgets::everything) return nullptr;
    if (forgets_ == Forgets::a_leaf) --sum_->scalars.minibatches;
    if (forgets_ == Forgets::squares) sum_->squares.back() = PartialSum<double>::kNotTaken;
    return sum_;
  }

 private:
  Forgets forgets_;
  int steps_ = 0;
};

TEST(OwnReducer, WhoseSumLacksSomethingEndsTraining) {
  using Forgets = Forgetful::Forgets;
  const std::map<Forgets, std::string> errors{
      {Forgets::everything, "the reducer has no sum of step 3 of the run; accepted: one"},
      {Forgets::a_leaf,
       "the reducer has the sum of 0 minibatches of step 3 of the run, which has 1; accepted: each "
       "of them once"},
      {Forgets::squares,
       "the reducer has a sum of step 3 of the run whose squares are not taken; accepted: all of "
       "them (Reducer::add())"}};
  for (const auto& expected : errors) {
    const Forgets forgets = expected.first;
    Trainer trainer = trainer_with([&](TrainOptions& options) {
      options.rule = "adascale";
      options.own_reducer = {.name = "forgetful",
                             .reproducible = true,
                             .of_double = [&](const ReducerSize& size, Workers&) {
                               return std::make_unique<Forgetful>(size, forgets);
                             }};
    });
    EXPECT_EQ(error_of([&] { trainer.fit(); }), expected.second);
    EXPECT_EQ(trainer.state().count("steps"), 2) << "the step is as if it had not been";
  }
}

// --- gradient transforms ---

// Does with the gradient what a function says.
template <class Function>
OwnGradientTransform with_values(std::string name, Function function) {
  return function_transform(std::move(name), [function](const StepGradient<double>& gradient,
                                                        Workers&) { function(gradient.values); });
}

OwnGradientTransform nothing() {
  return with_values("nothing", [](std::span<double>) {});
}

TEST(GradientTransforms, ThatDoNothingChangeNoBit) {
  for (const Change& clip : std::vector<Change>{
           [](TrainOptions&) {}, [](TrainOptions& options) { options.clip_norm = 0.01; },
           [](TrainOptions& options) { options.clip_value = 0.01; }}) {
    const Trainer with = trained([&](TrainOptions& options) {
      clip(options);
      options.gradient_transforms = {nothing()};
    });
    EXPECT_EQ(test::difference_of(trained(clip), with), std::nullopt);
  }
}

// Layer-wise rates, and a rule that sums gradients.
TEST(GradientTransforms, ThatDoNothingLeaveEveryOptimizerAsItIs) {
  for (const Change& extend : std::vector<Change>{[](TrainOptions& options) {
                                                    options.optimizer.method = LarsOptions{};
                                                    options.clip_value = 0.01;
                                                  },
                                                  [](TrainOptions& options) {
                                                    options.rule = "linear-momentum";
                                                    options.clip_norm = 0.01;
                                                  }}) {
    const Trainer without = trained(extend);
    const Trainer with = trained([&](TrainOptions& options) {
      extend(options);
      options.gradient_transforms = {nothing()};
    });
    const auto expected = without.parameters()[0].values<double>();
    const auto found = with.parameters()[0].values<double>();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-12 * std::abs(expected[i]));
      EXPECT_NE(expected[i], 0);
    }
  }
}

// An optimizer that goes by norms goes by those of what it applies.
TEST(GradientTransforms, ChangeTheNormsThatLayerWiseRatesGoBy) {
  // Weights of 0, as at the first step, have no layer-wise rate.
  const auto weight_of = [](double factor) {
    const Trainer trainer = trained([factor](TrainOptions& options) {
      options.optimizer = {.method = LarsOptions{}};
      options.gradient_transforms = {
          function_transform("times", [factor](const StepGradient<double>& gradient, Workers&) {
            if (gradient.step.value() == 0) return;
            for (double& value : gradient.values) value *= factor;
          })};
    });
    return trainer.parameters()[0].values<double>()[0];
  };
  EXPECT_NEAR(weight_of(1024), weight_of(1), 1e-6 * std::abs(weight_of(1)))
      << "the rate falls as the gradient grows";
}

TEST(GradientTransforms, ComeAfterClippingAndInOrder) {
  std::vector<double> norms;
  std::vector<double> shrunk;
  const auto note_norm = [](std::vector<double>& into) {
    return [&into](std::span<double> values) {
      double square = 0;
      for (const double value : values) square += value * value;
      into.push_back(std::sqrt(square));
    };
  };
  TrainOptions options = extended_options();
  options.clip_norm = 0.25;
  options.gradient_transforms = {with_values("note", note_norm(norms)),
                                 with_values("halve",
                                             [](std::span<double> values) {
                                               for (double& value : values) value /= 2;
                                             }),
                                 with_values("note again", note_norm(shrunk))};
  Trainer trainer(tiny_objective(), extended_trace(), options);
  const auto recorder = test::recorded(trainer);
  ASSERT_EQ(norms.size(), recorder->steps.size());
  ASSERT_EQ(shrunk.size(), norms.size());
  EXPECT_GT(recorder->steps[0].gradient_norm.value_or(0), 1) << "the record has the whole one";
  EXPECT_NEAR(norms[0], 0.25, 1e-6);
  for (std::size_t i = 0; i < norms.size(); ++i) EXPECT_NEAR(shrunk[i], norms[i] / 2, 1e-12);
}

TEST(GradientTransforms, AreWhatTheUpdateTakes) {
  TrainOptions options{
      .epochs = 1, .minibatch_size = 4, .learning_rate = 0.25, .cores = 2, .threads = 1};
  options.rule = "constant";
  for (const char* rule : {"constant", "linear-momentum"}) {
    options.rule = rule;
    options.reference_batch_size = 4;
    options.gradient_transforms = {with_values("sign", [](std::span<double> values) {
      for (double& value : values) value = std::copysign(1, value);
    })};
    Trainer trainer(tiny_objective(), trace_of({48}), options);
    trainer.fit();
    // A rule that sums has 12 minibatches in the place of one, and its own rate.
    const double expected = rule == std::string("constant") ? 0.25 : 0.25 * 12;
    for (const double weight : trainer.parameters()[0].values<double>()) {
      EXPECT_EQ(std::abs(weight), expected) << rule;
    }
  }
}

TEST(GradientTransforms, HaveTheSameBitsWhoeverComputesAndThroughResumes) {
  EXPECT_EQ(bits_that_differ([](TrainOptions& options) {
              options.clip_norm = 0.5;
              options.gradient_transforms = {test::largest_only(2), test::gaussian_noise(0.1)};
            }),
            std::nullopt);
}

TEST(GradientTransforms, SeeTheStep) {
  std::vector<std::int64_t> steps;
  std::vector<std::int64_t> epochs;
  std::vector<std::int64_t> batches;
  std::vector<std::vector<double>> weights;
  const Trainer trainer = trained([&](TrainOptions& options) {
    options.gradient_transforms = {
        function_transform("see", [&](const StepGradient<double>& gradient, Workers& workers) {
          EXPECT_EQ(workers.threads(), 2);
          EXPECT_EQ(gradient.batch_size, 4 * gradient.minibatches);
          EXPECT_EQ(gradient.parameters.size(), gradient.values.size());
          steps.push_back(gradient.step.value());
          epochs.push_back(gradient.epoch.value());
          batches.push_back(gradient.batch_size);
          weights.emplace_back(gradient.parameters.begin(), gradient.parameters.end());
        })};
  });
  EXPECT_THAT(steps, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(epochs, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(batches, ElementsAre(8, 24, 4, 12, 8, 24, 4, 12));
  EXPECT_THAT(weights[0], ElementsAre(0, 0, 0, 0));
}

// The noise of a step is its own, and that of the transform's name.
TEST(GradientTransforms, DrawNumbersOfTheirOwn) {
  std::vector<double> before;
  std::vector<double> noise;
  std::vector<std::uint64_t> seeds;
  const auto note_seed = [&](const std::string& name) {
    return function_transform(name, [&](const StepGradient<double>& gradient, Workers&) {
      seeds.push_back(gradient.stream.seed);
      EXPECT_EQ(gradient.stream.minibatch, -1) << "no minibatch has that key";
    });
  };
  trained([&](TrainOptions& options) {
    options.epochs = 600;
    options.clip_norm = 0.5;
    options.gradient_transforms = {
        note_seed("one"), note_seed("two"),
        with_values("before",
                    [&](std::span<double> values) { before.assign(values.begin(), values.end()); }),
        test::gaussian_noise(0.1), with_values("after", [&](std::span<double> values) {
          for (std::size_t i = 0; i < values.size(); ++i) noise.push_back(values[i] - before[i]);
        })};
  });
  EXPECT_NE(seeds[0], seeds[1]);
  EXPECT_EQ(seeds[0], seeds[2]) << "the step is in the rest of the key";
  double sum = 0;
  double squares = 0;
  for (const double number : noise) {
    sum += number;
    squares += number * number;
  }
  const auto count = static_cast<double>(noise.size());
  ASSERT_GT(count, 5000);
  // Five standard errors each.
  EXPECT_NEAR(sum / count, 0, 5 * 0.1 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 0.01, 5 * 0.01 * std::sqrt(2 / count));
  std::sort(noise.begin(), noise.end());
  EXPECT_EQ(std::unique(noise.begin(), noise.end()), noise.end()) << "no number is drawn twice";
}

// What largest_only() keeps back comes later: in all, what the gradients were.
TEST(GradientTransforms, MayRememberWhatTheyKeepBack) {
  std::vector<double> in(4);
  std::vector<double> out(4);
  const auto add_to = [](std::vector<double>& sums) {
    return [&sums](std::span<double> values) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
    };
  };
  const Trainer trainer = trained([&](TrainOptions& options) {
    options.gradient_transforms = {with_values("in", add_to(in)), test::largest_only(1),
                                   with_values("out", add_to(out)),
                                   with_values("count", [](std::span<double> values) {
                                     EXPECT_EQ(std::count(values.begin(), values.end(), 0.0), 3);
                                   })};
  });
  const auto left = trainer.state().part("transform/largest 1").values<double>("left");
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(out[i] + left[i], in[i], 1e-12);
  EXPECT_NE(left, std::vector<double>(4));
}

// Of floats, in a flat array with padding: 3 and 2 of them, in eights.
class Padded final : public ObjectiveOf<float> {
 public:
  std::int64_t samples() const override { return 8; }
  const std::vector<TrainedArray>& trained() const override { return trained_; }
  const std::vector<NamedArray>& parameters() const override { return arrays_; }
  std::string fingerprint() const override { return "padded"; }
  std::span<float> flat_parameters() override { return values_; }
  std::unique_ptr<Evaluator<float>> make_evaluator() override {
    class Ones final : public Evaluator<float> {
     public:
      double evaluate(const Minibatch&, const Leaf<float>& leaf, EvaluatorProgress&) override {
        for (const std::size_t i : {0U, 1U, 2U, 8U, 9U}) leaf.gradient[i] = 1;
        return 1;
      }
    };
    return std::make_unique<Ones>();
  }

 private:
  std::vector<float> values_ = std::vector<float>(16);
  std::vector<NamedArray> arrays_{
      {.name = "a", .type = ElementType::f32, .shape = {3}, .data = values_.data()},
      {.name = "b", .type = ElementType::f32, .shape = {2}, .data = values_.data() + 8}};
  std::vector<TrainedArray> trained_{{.array = arrays_[0], .end = 8},
                                     {.array = arrays_[1], .end = 16}};
};

TEST(GradientTransforms, LeaveThePaddingAlone) {
  TrainOptions options{.epochs = 1, .minibatch_size = 4, .threads = 1};
  options.gradient_transforms = {test::gaussian_noise(1)};
  auto objective = std::make_unique<Padded>();
  Padded& padded = *objective;
  Trainer trainer(std::move(objective), trace_of({8}), options);
  trainer.fit();
  const std::span<const float> values = padded.flat_parameters();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_parameter = i < 3 || i == 8 || i == 9;
    EXPECT_EQ(values[i] != 0, is_parameter) << i;
  }
}

TEST(GradientTransforms, ThatFailEndTrainingWithTheParametersOfTheStepBefore) {
  const auto failing = [](const std::function<void(std::span<double>)>& fail) {
    std::vector<double> expected;
    Trainer trainer = trainer_with([&](TrainOptions& options) {
      options.gradient_transforms = {
          function_transform("bad", [&](const StepGradient<double>& gradient, Workers&) {
            if (gradient.step.value() != 2) return;
            expected.assign(gradient.parameters.begin(), gradient.parameters.end());
            fail(gradient.values);
          })};
    });
    std::string what = "no error";
    try {
      trainer.fit();
    } catch (const std::exception& error) {
      what = error.what();
    }
    EXPECT_EQ(trainer.result().steps, 2);
    EXPECT_FALSE(trainer.has_state()) << "what a transform remembers is not taken back";
    expected.pop_back();
    EXPECT_EQ(trainer.parameters()[0].values<double>()[0], expected[0]);
    return what;
  };
  EXPECT_EQ(failing([](std::span<double> values) {
              values[1] = std::numeric_limits<double>::infinity();
            }),
            "gradient transform bad made a value infinite or NaN at epoch 1, step 3 of the run; "
            "accepted: finite ones");
  EXPECT_EQ(failing([](std::span<double>) { throw std::runtime_error("mine"); }), "mine");
}

TEST(GradientTransforms, AreRefusedWhereTheyCannotBeUsed) {
  const auto error = [](std::vector<OwnGradientTransform> transforms) {
    return error_of(
        [&] { trained([&](TrainOptions& options) { options.gradient_transforms = transforms; }); });
  };
  EXPECT_EQ(error({nothing(), nothing()}),
            "two gradient transforms are called nothing; accepted: different names");
  for (const char* name : {"", "a/b", "a\nb"}) {
    EXPECT_THAT(error({with_values(name, [](std::span<double>) {})}),
                HasSubstr("accepted: a name of one line without /"));
  }
  EXPECT_EQ(error({{.name = "of floats",
                    .of_float =
                        [](const TransformParts&) {
                          return std::unique_ptr<GradientTransform<float>>();
                        }}}),
            "gradient transform of floats makes none for parameters of type F64");
}

TEST(GradientTransforms, BindAState) {
  const auto with = [](std::vector<OwnGradientTransform> transforms) -> Change {
    return [=](TrainOptions& options) { options.gradient_transforms = transforms; };
  };
  const Change saved = with({test::largest_only(2), test::gaussian_noise(0.5)});
  EXPECT_EQ(error_loading(saved, saved), "no error");
  EXPECT_THAT(error_loading(saved, with({test::gaussian_noise(0.5), test::largest_only(2)})),
              HasSubstr("gradient_transforms was largest 2, noise 0.500000, is noise"));
  EXPECT_THAT(error_loading(saved, with({})),
              HasSubstr("gradient_transforms was largest 2, noise 0.500000, is nothing"));
}

// --- samplers ---

// An objective without parameters to speak of that notes which samples are shown in a step.
class Shown {
 public:
  [[nodiscard]] std::unique_ptr<Objective> objective(std::int64_t samples) {
    return function_objective<double>(
        {.initial = {1},
         .samples = samples,
         .value_and_gradient = [this](std::span<const double> parameters,
                                      std::span<const std::int64_t> minibatch,
                                      std::span<double> gradient) {
           const std::scoped_lock lock(mutex_);
           all_.insert(all_.end(), minibatch.begin(), minibatch.end());
           gradient[0] = parameters[0];
           return parameters[0] * parameters[0] / 2;
         }});
  }
  // In the order of training, where one core does it all.
  [[nodiscard]] const std::vector<std::int64_t>& all() const { return all_; }

 private:
  std::mutex mutex_;
  std::vector<std::int64_t> all_;
};

std::vector<std::int64_t> shown_by(const Sampler& sampler, std::int64_t samples,
                                   const std::vector<std::int64_t>& batches, Remainder remainder) {
  TrainOptions options{.epochs = 2, .minibatch_size = 2, .remainder = remainder};
  options.sampler = sampler;
  options.cores = 1;
  options.threads = 1;
  Shown shown;
  Trainer trainer(shown.objective(samples), trace_of(batches), options);
  trainer.fit();
  return shown.all();
}

TEST(Samplers, OrderTheSamplesOfTraining) {
  EXPECT_THAT(shown_by(in_order(), 6, {2, 4}, Remainder::drop),
              ElementsAre(0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5));
  EXPECT_THAT(shown_by(test::rotated(1), 6, {4}, Remainder::drop),
              ElementsAre(0, 1, 2, 3, 1, 2, 3, 4));
}

// Every entry of every list once.
TEST(Samplers, AreShownWholeWithCarry) {
  EXPECT_THAT(shown_by(test::rotated(2), 5, {4, 6}, Remainder::carry),
              ElementsAre(0, 1, 2, 3, 4, 2, 3, 4, 0, 1));
  const Sampler drawing = weighted({1, 0, 3, 0, 2, 0, 1});
  std::vector<std::int64_t> expected;
  for (const std::int64_t epoch : {0, 1}) {
    const auto list = drawing.order({.epoch = EpochIndex{epoch}, .seed = 42, .samples = 7});
    expected.insert(expected.end(), list.begin(), list.end());
  }
  EXPECT_EQ(shown_by(drawing, 7, {4, 6}, Remainder::carry), expected);
}

TEST(Samplers, HaveTheSameBitsWhoeverComputesAndThroughResumes) {
  std::vector<double> weights(48);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i % 5);
  for (const Remainder remainder : {Remainder::drop, Remainder::carry}) {
    EXPECT_EQ(bits_that_differ([&](TrainOptions& options) {
                options.remainder = remainder;
                options.sampler = weighted(weights);
              }),
              std::nullopt);
  }
}

TEST(Samplers, BindAState) {
  const auto with = [](const Sampler& sampler) -> Change {
    return [=](TrainOptions& options) { options.sampler = sampler; };
  };
  const auto error = [&](const Sampler& loading) {
    return error_loading(with(test::rotated(1)), with(loading));
  };
  EXPECT_EQ(error(test::rotated(1)), "no error");
  EXPECT_THAT(error(test::rotated(2)), HasSubstr("sampler was rotated by 1, is rotated by 2"));
  EXPECT_THAT(error({}), HasSubstr("sampler was rotated by 1, is nothing"));
}

TEST(Samplers, AreCheckedBeforeTheFirstStepAndThrowBetweenSteps) {
  const auto from = [](std::int64_t bad_epoch) {
    return trainer_with([bad_epoch](TrainOptions& options) {
      options.sampler = test::rotated(1);
      options.sampler.order = [bad_epoch, inner = options.sampler.order](const EpochDraw& draw) {
        std::vector<std::int64_t> list = inner(draw);
        if (draw.epoch.value() >= bad_epoch) list.back() = draw.samples;
        return list;
      };
    });
  };
  EXPECT_EQ(error_of([&] { from(0); }),
            "sampler rotated by 1 gave the index 48 for epoch 1; accepted: 0 to 47");
  Trainer trainer = from(1);
  EXPECT_EQ(error_of([&] { trainer.fit(); }),
            "sampler rotated by 1 gave the index 48 for epoch 2; accepted: 0 to 47");
  EXPECT_EQ(trainer.state().count("steps"), 4);
  EXPECT_EQ(error_of([] {
              trainer_with([](TrainOptions& options) { options.sampler.order = in_order().order; });
            }),
            "a sampler is called ''; accepted: a name of one line without /");
}

// --- docs/extending.md ---

TEST(Extending, ByRuleScheduleAndOptimizer) {
  const Trainer trainer = trained([](TrainOptions& options) {
    test::use_log_rule(options);
    test::use_inverse_time(options);
    options.optimizer = {};
    test::use_sign_descent(options);
  });
  // Rates 0.05 (1 + log2(batch / 8)) / (1 + step) of both epochs: a sign for each of them.
  double largest = 0;
  std::int64_t step = 0;
  for (const double batch : {8, 24, 4, 12, 8, 24, 4, 12}) {
    largest += 0.05 * std::max(0.0, 1 + std::log2(batch / 8)) / static_cast<double>(++step);
  }
  for (const double weight : trainer.parameters()[0].values<double>()) {
    EXPECT_LE(std::abs(weight), largest + 1e-12);
    EXPECT_NE(weight, 0);
  }
}

TEST(Extending, ByARuleThatAnswersMoreThanARate) {
  for (const char* const optimizer : {"adamw", "sgd"}) {
    TrainOptions options = extended_options();
    options.reference_batch_size = 8;
    options.optimizer = parse_optimizer(optimizer, {.weight_decay = 0.1});
    test::use_short_memory(options);
    Trainer trainer(tiny_objective(), Trace::constant(32), options);
    const auto recorder = test::recorded(trainer);
    const StepRecord& step = recorder->steps.front();
    EXPECT_DOUBLE_EQ(step.learning_rate, 2 * options.learning_rate);
    EXPECT_DOUBLE_EQ(step.weight_decay.value(), 0.2);
    EXPECT_EQ(step.optimizer.beta2.has_value(), optimizer == std::string_view("adamw"));
    EXPECT_NEAR(step.optimizer.beta2.value_or(0.996), 0.996, 1e-15);
  }
}

TEST(Extending, BySpans) {
  test::TimeOfActivities times;
  trained([&](TrainOptions& options) { options.on_span = std::ref(times); });
  for (const Activity activity : {Activity::forward, Activity::merge, Activity::update}) {
    EXPECT_GT(times.seconds(activity), 0) << choice_name(kActivities, activity);
  }
}

TEST(Extending, ByAClock) {
  Trainer trainer(tiny_objective(), test::on_spot_market(), extended_options());
  const TrainResult result = trainer.fit();
  ASSERT_TRUE(result.time.has_value());
  EXPECT_GT(result.time->seconds, 0.02 * static_cast<double>(result.steps));
  EXPECT_GT(result.time->core_seconds, result.time->seconds);
  EXPECT_NEAR(result.time->money, result.time->core_seconds / 3600 * 1.2, 1e-12);
}

TEST(Extending, ByABatchPolicy) {
  TrainOptions options = extended_options();
  options.epochs = 20;
  options.minibatch_size = 4;
  Trainer trainer(tiny_objective(), test::on_the_fastest_cores(), options);
  const auto recorder = test::recorded(trainer);
  ASSERT_EQ(recorder->steps.size(), 20U);
  EXPECT_EQ(recorder->steps[11].plan.cores, 12) << "each is tried once";
  // Three minibatches for each, 0.3 s, and six messages of 0.03 s.
  EXPECT_EQ(recorder->steps[12].plan.cores, 4);
  EXPECT_EQ(recorder->steps.back().plan.cores, 4);
}

TEST(Extending, ByPolicyAndObserver) {
  TrainOptions options = extended_options();
  options.epochs = 40;
  Trainer trainer(tiny_objective(), test::growing_batches(), options);
  TrainResult result;
  const std::vector<double> losses = test::losses_of(trainer, result);
  EXPECT_EQ(result.stopped, "the loss is small enough");
  EXPECT_EQ(losses.size(), static_cast<std::size_t>(result.steps));
}

}  // namespace
}  // namespace rubato
