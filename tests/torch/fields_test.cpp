// Every field of what rules are asked, results and records say, and states keep, beside a
// computation of its own.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/numbers/rule.hpp>

#include "base/core/limits.hpp"
#include "libtorch/operators/operators.hpp"
#include "numbers/scaling/gradient_noise.hpp"
#include "support/changed_state.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "torch/small_run.hpp"
#include "torch/support.hpp"

namespace rubato {
namespace {

using test::dataset;
using test::Net;
using test::options_of;
using test::trainer_on;

// What a rule was asked in a step, the spans copied.
struct Asked {
  RuleInput input;
  std::vector<GradientNorms> groups;
  std::vector<ParameterNorms> layers;
};

class Asking : public Rule {
 public:
  Asking(RuleNeeds needs, std::vector<Asked>& asked) : needs_(needs), asked_(asked) {}
  std::string_view name() const override { return "asking"; }
  RuleNeeds needs() const override { return needs_; }
  Rates rates(const RuleInput& input) override {
    asked_.push_back({.input = input,
                      .groups = {input.groups.begin(), input.groups.end()},
                      .layers = {input.layers.begin(), input.layers.end()}});
    return {.learning_rate = 0.25, .update_rate = 0.1, .gain = 1.5};
  }

 private:
  RuleNeeds needs_;
  std::vector<Asked>& asked_;
};

double square_sum(const at::Tensor& tensor) {
  return tensor.square().sum().item<double>();
}

double square_sum(const std::vector<at::Tensor>& tensors) {
  double sum = 0;
  for (const at::Tensor& tensor : tensors) sum += square_sum(tensor);
  return sum;
}

// The sum over the minibatches of a step of their squared norms.
double minibatch_squares(const StepRecord& step) {
  double sum = 0;
  for (const MinibatchRecord& minibatch : step.minibatches) {
    sum += minibatch.gradient_norm * minibatch.gradient_norm;
  }
  return sum;
}

TEST(Rules, AreToldAllOfAStep) {
  for (const bool groups : {false, true}) {
    for (const bool layers : {false, true}) {
      SCOPED_TRACE(testing::Message() << groups << layers);
      std::vector<Asked> asked;
      TrainOptions options = options_of(test::own_rule("asking", [&](Spec&) {
        return std::make_unique<Asking>(RuleNeeds{.group_norms = groups, .parameter_norms = layers},
                                        asked);
      }));
      options.epochs = 2;
      options.reference_batch_size = 6;
      options.optimizer = {.weight_decay = 0.5};
      options.groups = {no_decay_for_vectors()};
      options.schedule = "step:every=1,gamma=0.5";
      options.log_minibatches = true;
      // Of 1, 1, 2 and 8 minibatches.
      TorchTrainer trainer = trainer_on(test::trace_of({4, 4, 8, 32}, TraceEnd::cycle), options);
      const auto means = trainer.add_observer<test::Means>();
      const auto records = test::recorded(trainer)->steps;
      ASSERT_EQ(asked.size(), 8U);
      for (std::size_t i = 0; i < asked.size(); ++i) {
        SCOPED_TRACE(i);
        const RuleInput& input = asked[i].input;
        EXPECT_EQ(input.batch_size, records[i].plan.batch_size);
        EXPECT_EQ(input.minibatch_size, 4);
        EXPECT_EQ(input.reference_batch_size, 6);
        EXPECT_DOUBLE_EQ(input.base_learning_rate, i < 4 ? 0.1 : 0.05);
        EXPECT_EQ(input.epoch_size, 48);
        EXPECT_EQ(input.group_count, 2U);
        EXPECT_EQ(input.layer_count, 4U);
        // The second of two steps of one minibatch.
        const bool pair = groups && i % 4 == 1;
        EXPECT_EQ(input.from_pair, pair);
        EXPECT_EQ(asked[i].groups.size(), groups ? 2U : 0U);
        EXPECT_EQ(asked[i].layers.size(), layers ? 4U : 0U);
        const auto& gradients = means->gradients[i];
        std::array<double, 2> mean{};
        for (std::size_t l = 0; l < 4; ++l) {
          const std::size_t group = l % 2;  // the biases
          mean.at(group) +=
              square_sum(pair ? (gradients[l] + means->gradients[i - 1][l]) / 2 : gradients[l]);
          if (!layers) continue;
          EXPECT_NEAR(asked[i].layers[l].gradient_square, square_sum(gradients[l]), 1e-12) << l;
          EXPECT_NEAR(asked[i].layers[l].weight_square, square_sum(means->weights[i][l]), 1e-9);
          EXPECT_EQ(asked[i].layers[l].weight_decay, group == 0 ? 0.5 : 0);
        }
        if (groups) {
          double squares = 0;
          for (std::size_t g = 0; g < 2; ++g) {
            squares += asked[i].groups[g].minibatch_square;
            EXPECT_NEAR(asked[i].groups[g].mean_square, mean.at(g), 1e-12) << g;
          }
          const double own = minibatch_squares(records[i]);
          const double expected = pair ? (own + square_sum(means->gradients[i - 1])) / 2
                                       : own / static_cast<double>(records[i].minibatches.size());
          EXPECT_NEAR(squares, expected, 1e-12);
        }
        EXPECT_EQ(records[i].gradient_norm.has_value(), groups || layers);
        if (records[i].gradient_norm) {
          EXPECT_NEAR(*records[i].gradient_norm, std::sqrt(square_sum(gradients)), 1e-12);
        }
        EXPECT_EQ(records[i].learning_rate, 0.25);
        EXPECT_EQ(records[i].gain, 1.5);
        EXPECT_DOUBLE_EQ(records[i].iterations, 1.5 * static_cast<double>(i + 1));
        EXPECT_DOUBLE_EQ(records[i].scale, static_cast<double>(records[i].plan.batch_size) / 6);
        EXPECT_EQ(records[i].epoch, EpochIndex{static_cast<std::int64_t>(i) / 4});
      }
    }
  }
}

// The gradient noise scale by its class, from the gradients of steps of several minibatches, and
// from pairs of steps of one.
TEST(Noise, IsMeasuredFromTheGradientsOfEachStep) {
  TrainOptions options = options_of("constant");
  options.log_noise = true;
  options.log_minibatches = true;
  TorchTrainer trainer = trainer_on(test::trace_of({4, 4, 16, 4, 4, 16}, TraceEnd::cycle), options);
  const auto means = trainer.add_observer<test::Means>();
  const auto records = test::recorded(trainer)->steps;
  NoiseScale expected;
  bool some = false;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto count = static_cast<std::int64_t>(records[i].minibatches.size());
    GradientNorms norms;
    const auto& gradients = means->gradients[i];
    const bool pair = count == 1 && i > 0 && records[i - 1].minibatches.size() == 1;
    if (pair) {
      const auto& before = means->gradients[i - 1];
      norms.minibatch_square = (square_sum(gradients) + square_sum(before)) / 2;
      for (std::size_t l = 0; l < 4; ++l) {
        norms.mean_square += square_sum((gradients[l] + before[l]) / 2);
      }
    } else {
      norms.minibatch_square = minibatch_squares(records[i]) / static_cast<double>(count);
      norms.mean_square = square_sum(gradients);
    }
    expected.update({&norms, 1}, pair ? 2 : count, 4);
    EXPECT_EQ(records[i].noise_scale.has_value(), expected.value().has_value()) << i;
    if (!expected.value()) continue;
    some = true;
    EXPECT_NEAR(records[i].noise_scale.value(), *expected.value(), 1e-7 * *expected.value()) << i;
  }
  EXPECT_TRUE(some);
}

void expect_same(const std::optional<Evaluation>& a, const std::optional<Evaluation>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a) return;
  EXPECT_EQ(a->samples, b->samples);
  EXPECT_EQ(a->loss, b->loss);
  EXPECT_EQ(a->accuracy, b->accuracy);
  EXPECT_EQ(a->top_k_accuracy, b->top_k_accuracy);
  EXPECT_EQ(a->mse, b->mse);
  EXPECT_EQ(a->perplexity, b->perplexity);
  EXPECT_EQ(a->bits_per_byte, b->bits_per_byte);
}

void expect_same(const TrainResult& a, const TrainResult& b) {
  EXPECT_EQ(a.epochs, b.epochs);
  ASSERT_EQ(a.part.has_value(), b.part.has_value());
  if (a.part) {
    EXPECT_EQ(a.part->steps, b.part->steps);
    EXPECT_EQ(a.part->samples, b.part->samples);
    EXPECT_EQ(a.part->of_steps, b.part->of_steps);
  }
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.skipped_steps, b.skipped_steps);
  EXPECT_EQ(a.train_seconds, b.train_seconds);
  expect_same(a.final_test, b.final_test);
  EXPECT_EQ(a.best_test_accuracy, b.best_test_accuracy);
  EXPECT_EQ(a.iterations, b.iterations);
  EXPECT_EQ(a.stopped, b.stopped);
}

// Keeps the result with the state.
class ResultKeeper : public test::StateKeeper {
 public:
  void between_steps(Training& training) override {
    test::StateKeeper::between_steps(training);
    results.push_back(training.result());
  }
  std::vector<TrainResult> results;
};

// Of a trainer that has loaded a state and trained nothing yet, all is as it was.
TEST(Resume, GivesBackEveryFieldOfTheResult) {
  struct Setting {
    std::string what;
    Trace trace;
    std::function<void(test::AllOptions&)> change;
    bool tested = true;
  };
  const std::vector<Setting> settings{
      {"plain", test::trace_of({16, 32}, TraceEnd::cycle), [](auto&) {}},
      {"without a test set", test::trace_of({16, 32}, TraceEnd::cycle), [](auto&) {}, false},
      {"top 2", test::trace_of({16, 32}, TraceEnd::cycle), [](auto& o) { o.top_k = 2; }},
      {"perplexity", test::trace_of({16, 32}, TraceEnd::cycle),
       [](auto& o) { o.perplexity = true; }},
      {"bits per byte", test::trace_of({16, 32}, TraceEnd::cycle),
       [](auto& o) { o.bytes_per_target = 2; }},
      {"stopped", test::trace_of({8, 24}, TraceEnd::cycle),
       [](auto& o) { o.budget.iterations = 7; }},
      {"a trace that ends", test::trace_of({16, 32, 8}, TraceEnd::stop), [](auto&) {}},
      {"skipped steps", test::trace_of({16, 32}, TraceEnd::cycle), [](auto& o) {
         o.torch.precision = Precision::fp16;
         o.torch.loss_scale.initial = 1e9;
       }}};
  for (const Setting& setting : settings) {
    SCOPED_TRACE(setting.what);
    test::AllOptions options = options_of();
    setting.change(options);
    const auto make = [&] {
      TorchTrainer trainer(
          builtin_model("softmax", {.channels = 1, .height = 1, .width = 6, .classes = 3}),
          nll_loss(), dataset(at::kFloat), setting.trace, options, options.torch);
      if (setting.tested) trainer.set_test(dataset(at::kFloat));
      return trainer;
    };
    TorchTrainer trainer = make();
    const auto keeper = trainer.add_observer<ResultKeeper>();
    const auto all = test::recorded(trainer);
    if (setting.what == "skipped steps") {
      EXPECT_GT(trainer.result().skipped_steps, 0);
    }
    ASSERT_EQ(keeper->results.size(), keeper->states.size());
    for (std::size_t i = 0; i < keeper->states.size(); ++i) {
      TorchTrainer other = make();
      other.load_state(keeper->states[i]);
      expect_same(other.result(), keeper->results[i]);
      // And the records of what is left add up to the same ones.
      const auto rest = test::recorded(other);
      ASSERT_LE(rest->epochs.size(), all->epochs.size());
      const std::size_t before = all->epochs.size() - rest->epochs.size();
      for (std::size_t e = 0; e < rest->epochs.size(); ++e) {
        const EpochRecord& a = rest->epochs[e];
        const EpochRecord& b = all->epochs[before + e];
        EXPECT_EQ(a.epoch, b.epoch);
        EXPECT_EQ(a.whole, b.whole);
        EXPECT_EQ(a.steps, b.steps);
        EXPECT_EQ(a.samples, b.samples);
        EXPECT_EQ(a.train_loss, b.train_loss);
        expect_same(a.test, b.test);
      }
    }
    // The seconds of the steps before count.
    const std::size_t middle = keeper->states.size() / 2;
    TorchTrainer later = make();
    later.load_state(keeper->states[middle]);
    EXPECT_GE(later.fit().train_seconds, keeper->results[middle].train_seconds);
  }
}

// A state in the middle of its second epoch is of two.
TEST(Resume, CountsTheEpochThatHasBegun) {
  const auto with_epochs = [](std::int64_t epochs) {
    TrainOptions options = options_of();
    options.epochs = epochs;
    return trainer_on(Trace::constant(16), options);
  };
  TorchTrainer trainer = with_epochs(3);
  const auto keeper = trainer.add_observer<test::StateKeeper>();
  trainer.fit();
  const auto error = [&](std::size_t state, std::int64_t epochs) {
    TorchTrainer other = with_epochs(epochs);
    return error_of([&] { other.load_state(keeper->states[state]); });
  };
  // Three steps and the end of the epoch, and the first step of the second.
  EXPECT_EQ(error(3, 1), "no error");
  EXPECT_EQ(error(4, 2), "no error");
  EXPECT_EQ(error(4, 1), "1 epochs are asked for, but epoch 2 has begun; accepted: at least 2");
  // More steps than there are since the epoch began.
  State damaged = test::without_array(keeper->states[4], "epoch.steps");
  damaged.put("epoch.steps", std::int64_t{4});
  TorchTrainer other = with_epochs(3);
  EXPECT_EQ(error_of([&] { other.load_state(damaged); }),
            "the state is damaged: 4 steps from step 4 on are not 4 steps");
}

// The rows that steps have used are hashed in blocks of 4096.
TEST(Resume, IsBoundToTheRowsOfLongTraces) {
  constexpr std::int64_t kBlock = 4096;
  constexpr ImageShape kShape{.channels = 1, .height = 1, .width = 1, .classes = 2};
  const TensorDataset data{.inputs = at::ones({kBlock + 8, 1, 1, 1}),
                           .targets = at::zeros({kBlock + 8}, at::kLong)};
  const auto make = [&](std::int64_t odd_row) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(kBlock) + 2, 1);
    if (odd_row >= 0) rows.at(static_cast<std::size_t>(odd_row)) = 2;
    return TorchTrainer(builtin_model("softmax", kShape), nll_loss(), data,
                        test::trace_of(rows, TraceEnd::stop),
                        {.epochs = 1, .minibatch_size = 1, .cores = 1, .threads = 1});
  };
  TorchTrainer trainer = make(-1);
  std::vector<State> states;
  class Keeper : public Observer {
   public:
    explicit Keeper(std::vector<State>& states) : states_(states) {}
    void between_steps(Training& training) override {
      if (training.result().steps >= kBlock) states_.push_back(training.state());
    }

   private:
    std::vector<State>& states_;
  };
  trainer.add_observer<Keeper>(states);
  trainer.fit();
  ASSERT_GE(states.size(), 2U);
  // After 4096 steps, and after one more.
  for (std::int64_t more = 0; more < 2; ++more) {
    for (const std::int64_t odd : {std::int64_t{0}, kBlock - 1, kBlock, kBlock + 1}) {
      TorchTrainer other = make(odd);
      const std::string error =
          error_of([&] { other.load_state(states[static_cast<std::size_t>(more)]); });
      EXPECT_EQ(error != "no error", odd < kBlock + more) << odd << " after " << more << error;
    }
  }
}

// Which group takes a tensor is decided by a function, whose answers count.
TEST(Resume, IsBoundToWhichGroupTakesATensor) {
  const auto trainer_with = [](const std::string& name) {
    TrainOptions options = options_of();
    options.groups = {{.name = "some",
                       .takes = [name](const NamedArray& named) { return named.name == name; },
                       .options = {.learning_rate_factor = 2}}};
    return trainer_on(Trace::constant(16), options);
  };
  const State state = trainer_with("out.bias").state();
  TorchTrainer same = trainer_with("out.bias");
  EXPECT_EQ(error_of([&] { same.load_state(state); }), "no error");
  TorchTrainer other = trainer_with("out.weight");
  EXPECT_THAT(error_of([&] { other.load_state(state); }), HasSubstr("parameters was "));
}

// By type and shape, too, where the bytes are the same.
TEST(Fingerprint, IsOfTypeShapeAndBytes) {
  const at::Tensor values = at::arange(12, at::kInt);
  std::set<std::string> seen;
  const auto of = [&](const at::Tensor& inputs, const at::Tensor& targets) {
    return make_dataset({.inputs = inputs, .targets = targets})->fingerprint();
  };
  const at::Tensor targets = at::arange(6);
  const at::Tensor inputs = values.reshape({6, 2});
  EXPECT_TRUE(seen.insert(of(inputs, targets)).second);
  EXPECT_TRUE(seen.insert(of(values.reshape({6, 2, 1}), targets)).second) << "shape";
  EXPECT_TRUE(seen.insert(of(inputs.view(at::kFloat), targets)).second) << "type";
  EXPECT_TRUE(seen.insert(of(inputs + 1, targets)).second) << "values";
  EXPECT_TRUE(seen.insert(of(inputs, targets.reshape({6, 1}))).second) << "shape of targets";
  EXPECT_TRUE(seen.insert(of(inputs, targets.flip(0))).second) << "targets";
  EXPECT_FALSE(seen.insert(of(inputs.t().contiguous().t(), targets.clone())).second);
  const std::string on_meta = "x: targets are on meta; accepted: cpu";
  EXPECT_EQ(
      error_of([&] { require_valid({.inputs = inputs, .targets = targets.to(at::kMeta)}, "x"); }),
      on_meta);
}

// Linear layers around a batch normalisation, whose statistics are buffers.
struct Normalised : torch::nn::Module {
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(6, 5));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(5));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(5, 3));

  Normalised() { to(at::kDouble); }
  at::Tensor forward(const at::Tensor& x) { return out(norm(hidden(x))); }
};

// Ends with what is worse, so that what is best is not what is there.
TEST(BestWeights, KeepBuffersAndGoOnFromTheirState) {
  for (const Metric metric : {Metric::test_loss, Metric::test_accuracy, Metric::train_loss}) {
    SCOPED_TRACE(choice_name(kMetrics, metric));
    TrainOptions options = options_of("constant");
    options.epochs = 3;
    const auto make = [&] {
      TorchTrainer trainer(model_factory<Normalised>(), cross_entropy_loss(), dataset(),
                           Trace::constant(16), options);
      trainer.set_test(dataset());
      return trainer;
    };
    TorchTrainer trainer = make();
    int calls = 0;
    const auto best =
        trainer.add_observer<BestWeights>(metric, [&](const BestWeights&) { ++calls; });
    class Keeper : public test::Recorder {
     public:
      void on_epoch(Training& training, const EpochRecord& epoch) override {
        Recorder::on_epoch(training, epoch);
        parameters.push_back(test::copies_of(training.parameters()));
        buffers.push_back(test::copies_of(training.buffers()));
      }
      std::vector<std::vector<at::Tensor>> parameters;
      std::vector<std::vector<at::Tensor>> buffers;
    };
    const auto keeper = trainer.add_observer<Keeper>();
    const auto states = trainer.add_observer<test::StateKeeper>();
    trainer.fit();
    // By the records alone.
    std::size_t expected = 0;
    int better = 0;
    std::optional<double> value;
    for (std::size_t i = 0; i < keeper->epochs.size(); ++i) {
      const EpochRecord& epoch = keeper->epochs[i];
      const double now = metric == Metric::train_loss  ? epoch.train_loss
                         : metric == Metric::test_loss ? epoch.test->loss
                                                       : epoch.test->accuracy.value();
      if (value && (metric == Metric::test_accuracy ? now <= *value : now >= *value)) continue;
      value = now;
      expected = i;
      ++better;
    }
    EXPECT_EQ(calls, better);
    const auto expect_best = [&](const BestWeights& these) {
      EXPECT_EQ(these.value(), value);
      EXPECT_EQ(these.epoch().value(), static_cast<std::int64_t>(expected));
      ASSERT_EQ(these.parameters().size(), keeper->parameters[expected].size());
      ASSERT_EQ(these.buffers().size(), 3U);
      for (std::size_t i = 0; i < these.parameters().size(); ++i) {
        EXPECT_TRUE(
            at::equal(tensor_of(these.parameters()[i]).tensor, keeper->parameters[expected][i]));
      }
      for (std::size_t i = 0; i < these.buffers().size(); ++i) {
        EXPECT_EQ(these.buffers()[i].name, trainer.buffers()[i].name);
        EXPECT_TRUE(at::equal(tensor_of(these.buffers()[i]).tensor, keeper->buffers[expected][i]))
            << i;
      }
    };
    expect_best(*best);
    // From every state; the last is that of the end, where nothing is left to do.
    for (const State& state : states->states) {
      TorchTrainer other = make();
      const auto loaded = other.add_observer<BestWeights>(metric);
      other.load_state(state);
      other.fit();
      expect_best(*loaded);
    }
  }
}

TEST(BestWeights, AreNoneWithoutTheMetric) {
  TorchTrainer trainer = trainer_on(Trace::constant(48), options_of());
  const auto best = trainer.add_observer<BestWeights>(Metric::test_accuracy);
  const auto early =
      trainer.add_observer<EarlyStopping>(Metric::test_loss, PatienceOptions{.patience = 1});
  trainer.fit();
  EXPECT_FALSE(best->value().has_value());
  EXPECT_TRUE(best->parameters().empty());
  EXPECT_FALSE(early->patience().best().has_value());
  EXPECT_EQ(trainer.result().stopped, "");
}

// With all of what it counts, after every value.
TEST(Patience, GoesOnFromItsState) {
  const std::vector<double> values{std::nan(""), 5, 4.9, 4.5, 4.45, 4.45, 3, 3.1, 2.95, 2.91, 1};
  for (const MetricMode mode : {MetricMode::min, MetricMode::max}) {
    const PatienceOptions options{.patience = 3, .delta = 0.1, .mode = mode};
    for (std::size_t saved = 0; saved <= values.size(); ++saved) {
      Patience whole(options);
      Patience part(options);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i == saved) {
          Patience next(options);
          load_numbers(next, numbers_of(part), "patience");
          part = next;
        }
        const double value = mode == MetricMode::min ? values[i] : -values[i];
        EXPECT_EQ(part.is_over_after(value), whole.is_over_after(value)) << saved << " " << i;
        EXPECT_EQ(part.best(), whole.best());
        EXPECT_EQ(part.improved(), whole.improved()) << saved << " " << i;
      }
    }
  }
  Patience three({.patience = 3});
  EXPECT_FALSE(three.is_over_after(1));
  EXPECT_FALSE(three.is_over_after(1));
  EXPECT_FALSE(three.is_over_after(2));
  EXPECT_TRUE(three.is_over_after(1));
  EXPECT_TRUE(three.is_over_after(0)) << "over is over";
  for (const std::vector<double>& bad :
       {std::vector<double>{}, {1, 2, 3}, {1, 2, 3, 0, 0}, {1, 2, -1, 0}, {1, 2, 0.5, 0}}) {
    EXPECT_NE(error_of([&] { load_numbers(Patience({}), bad, "a patience"); }), "no error");
  }
  EXPECT_NE(error_of([] { return Patience({.delta = std::nan("")}); }), "no error");
}

TEST(Monitor, PassesOverWhatHasNoElement) {
  const at::Tensor one = at::ones({1});
  const std::vector<NamedArray> all{array_of({"a.weight", at::ones({2, 2})}),
                                    array_of({"a.bias", one}),
                                    array_of({"b.empty", at::ones({0})})};
  EXPECT_EQ(matching(all, "a.*").size(), 2U);
  EXPECT_EQ(matching(all, "*")[1].name, "a.bias");
  EXPECT_EQ(matching(all, "*").size(), 2U);
  EXPECT_EQ(error_of([&] { return matching(all, "b.*"); }),
            "no parameter matches 'b.*'; the model's are a.weight, a.bias, b.empty");
}

TEST(Monitor, SeesNoGradientOfWhatIsFrozen) {
  class Frozen : public Net {
   public:
    Frozen() { parameters()[1].requires_grad_(false); }
  };
  TorchTrainer trainer(model_factory<Frozen>(), cross_entropy_loss(), dataset(),
                       Trace::constant(48), options_of());
  std::vector<std::string> seen;
  trainer.add_observer<Monitor>(
      "hidden.*", 1, [&](const StepPlan&, std::span<const TensorStatistics> tensors) {
        for (const TensorStatistics& tensor : tensors) {
          seen.push_back(tensor.name + (tensor.gradient ? " gradient" : ""));
        }
      });
  trainer.fit();
  ASSERT_EQ(seen.size(), 6U);
  seen.resize(3);
  EXPECT_THAT(seen, ElementsAre("hidden.weight", "hidden.weight gradient", "hidden.bias"));
}

TEST(Groups, OfNoDecayHaveNoLayerWiseRateEither) {
  for (const ParameterGroup& group : {no_decay_for_vectors(), no_decay_for("a*")}) {
    EXPECT_EQ(group.options.weight_decay, 0);
    EXPECT_EQ(group.options.momentum, std::nullopt);
    EXPECT_EQ(group.options.learning_rate_factor, 1);
    EXPECT_FALSE(group.options.layer_wise);
  }
  const auto takes = [](const ParameterGroup& group, const char* name,
                        const std::vector<std::int64_t>& shape) {
    return group.takes({.name = name, .shape = shape});
  };
  EXPECT_TRUE(takes(no_decay_for_vectors(), "x", {}));
  EXPECT_TRUE(takes(no_decay_for_vectors(), "x", {3}));
  EXPECT_FALSE(takes(no_decay_for_vectors(), "x", {3, 1}));
  EXPECT_TRUE(takes(no_decay_for("a*"), "ab", {3, 1}));
  EXPECT_FALSE(takes(no_decay_for("a*"), "ba", {3}));
  EXPECT_EQ(no_decay_for("a*").name, "a*");
}

// Evaluations are of the operators that were chosen, bit for bit.
TEST(Evaluation, IsByTheOperatorsAskedFor) {
  const TensorDataset data = test::digits(64, 3);
  const auto loss_by = [&](const ReplacedOperators& operators) {
    const TrainOptions options{.threads = 1};
    TorchTrainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), data, Trace::constant(32),
                         options, {.operators = operators});
    const double loss = trainer.evaluate(data).loss;
    // The model alone, in the same scope.
    const at::NoGradGuard no_grad;
    at::manual_seed(options.seed);
    const Model model = builtin_model("mnist-cnn", {})();
    model.set_training(false);
    const OperatorScope scope(operators);
    const at::Tensor output = model.forward(data.inputs);
    EXPECT_EQ(loss, at::nll_loss(output, data.targets).item<double>());
    return loss;
  };
  const double ours = loss_by({});
  const double theirs = loss_by(ReplacedOperators::none());
  EXPECT_NEAR(ours, theirs, 1e-5);
}

// 250 samples at a time.
TEST(TrainingErrors, OfEvaluationsSayWhichSamples) {
  for (const auto& [call, samples] :
       {std::pair{0, "samples 1 to 250"}, {1, "samples 251 to 300"}}) {
    TorchTrainer trainer = trainer_on(Trace::constant(48), [] {
      TrainOptions options = options_of();
      options.threads = 1;
      return options;
    }());
    const at::Tensor inputs = dataset().inputs.repeat({7, 1}).narrow(0, 0, 300);
    const at::Tensor targets = dataset().targets.repeat({7}).narrow(0, 0, 300);
    int calls = 0;
    trainer.set_test(dataset(),
                     [&, fails = call](const at::Tensor& output, const at::Tensor& target) {
                       if (calls++ == fails) throw Error("no");
                       return at::cross_entropy_loss(output, target);
                     });
    EXPECT_EQ(error_of([&] { return trainer.evaluate({.inputs = inputs, .targets = targets}); }),
              std::string("evaluation of ") + samples + ": no");
  }
}

// Fewer samples than a minibatch, and several classes to a sample.
TEST(Trial, FindsWhatIsWrongInSmallSets) {
  TrainOptions options = options_of();
  options.threads = 1;
  TorchTrainer trainer = trainer_on(Trace::constant(8), options);
  trainer.set_test(
      {.inputs = at::randn({2, 7}, at::kDouble), .targets = at::tensor({0, 2}, at::kLong)});
  EXPECT_THAT(error_of([&] { trainer.fit(); }),
              HasSubstr("evaluation of a minibatch of the test data, tried before training (inputs "
                        "Double [2, 7], targets Long [2] from 0 to 2): "));
  const Loss first_class = [](const at::Tensor& output, const at::Tensor& target) {
    return at::cross_entropy_loss(output, target.select(1, 1));
  };
  TensorDataset several = dataset();
  several.targets = at::stack({at::zeros({48}, at::kLong), several.targets}, 1);
  several.targets[40][1] = 3;
  TorchTrainer other(model_factory<Net>(), first_class, several, Trace::constant(8), options);
  EXPECT_THAT(error_of([&] { other.fit(); }),
              HasSubstr("loss of a minibatch of the training data, tried before training (inputs "
                        "Double [4, 6], targets Long [4, 2] from 0 to 3): "));
}

// Every number that is checked, at its border and where it is none.
TEST(Trainer, KnowsTheBordersOfItsOptions) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto accepts = [](const std::function<void(TrainOptions&)>& change) {
    TrainOptions options = options_of();
    change(options);
    return error_of([&] { trainer_on(Trace::constant(16), options); }) == "no error";
  };
  EXPECT_TRUE(accepts([](auto& o) { o.epochs = 1; }));
  EXPECT_TRUE(accepts([](auto& o) { o.top_k = 0; }));
  EXPECT_TRUE(accepts([](auto& o) { o.threads = 1; }));
  EXPECT_TRUE(accepts([](auto& o) { o.reference_batch_size = 1; }));
  EXPECT_FALSE(accepts([](auto& o) { o.epochs = -1; }));
  for (const double bad : {0.0, -1.0, kNan}) {
    EXPECT_FALSE(accepts([&](auto& o) { o.budget.iterations = bad; })) << bad;
    EXPECT_FALSE(accepts([&](auto& o) { o.clip_norm = bad; })) << bad;
    EXPECT_FALSE(accepts([&](auto& o) { o.clip_value = bad; })) << bad;
  }
  EXPECT_TRUE(accepts([](auto& o) { o.clip_norm = 1e-300; }));
  EXPECT_FALSE(accepts([](auto& o) { o.reduce = "ring"; })) << "it is not exact";
  EXPECT_TRUE(accepts([](auto& o) {
    o.reduce = "ring";
    o.exact = false;
  }));
}

// More than any machine has, without any memory: what of it is asked for is said.
TEST(Trainer, AsksForTheMemoryOfItsSamplesAndItsOptimizer) {
  TrainOptions options{.minibatch_size = 4, .threads = 1};
  options.lookahead.emplace();
  options.own_optimizer =
      torch_optimizer([](std::vector<torch::optim::OptimizerParamGroup> groups) {
        return std::make_unique<torch::optim::Adam>(std::move(groups));
      });
  // 5,000 floats.
  const auto factory = [] {
    return Model{.forward = [](const at::Tensor& x) { return x; },
                 .set_training = [](bool) {},
                 .parameters = {{"weight", at::zeros({50, 100}).requires_grad_()}},
                 .buffers = {}};
  };
  const TensorDataset data{.inputs = at::zeros({1}).expand({8, std::int64_t{1} << 50}),
                           .targets = at::zeros({8})};
  // The buffer begins its rows at 64 bytes: 5,008 floats.
  EXPECT_THAT(
      error_of([&] { TorchTrainer(factory, mse_loss(), data, Trace::constant(8), options); }),
      HasSubstr(", " + bytes_text(5008.0 * 4) + " for the optimizer"));
}

// Whoever is told of a fault: all of them, with what was tried and on how many it is redone.
TEST(Observers, HearOfEveryFault) {
  class Hearing : public Observer {
   public:
    void on_fault(Training&, const StepPlan& step, std::span<const FaultRecord> faults,
                  std::int64_t cores_left) override {
      for (const FaultRecord& fault : faults) {
        heard.push_back(
            {step.index.value(), step.cores, fault.core.value(), fault.substep, cores_left});
      }
    }
    std::vector<std::vector<std::int64_t>> heard;
  };
  TrainOptions options = options_of();
  options.epochs = 1;
  options.faults.planned = {{CoreRank{2}, StepIndex{0}, 1}, {CoreRank{0}, StepIndex{2}, 7}};
  // Of 6 minibatches: 2 for each of 3 cores.
  TorchTrainer trainer = trainer_on(test::trace_of({24, 8, 8}, TraceEnd::cycle), options);
  const auto first = trainer.add_observer<Hearing>();
  const auto second = trainer.add_observer<Hearing>();
  const auto records = test::recorded(trainer)->steps;
  using Heard = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(first->heard, (Heard{{0, 3, 2, 1, 2}, {2, 3, 0, 0, 2}}));
  EXPECT_EQ(second->heard, first->heard);
  EXPECT_EQ(records[0].plan.cores, 2) << "those that were left";
  EXPECT_EQ(records[1].plan.cores, 3);
}

}  // namespace
}  // namespace rubato
