#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/objective.hpp>

#include "libtorch/versions.hpp"
#include "small_run.hpp"
#include "support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

bool is_half(const at::Tensor& tensor) {
  return at::equal(tensor, tensor.to(at::kHalf).to(at::kFloat));
}

test::AllOptions half_options(LossScaleOptions scale = {}) {
  test::AllOptions options = TrainOptions{
      .epochs = 2, .minibatch_size = 8, .learning_rate = 0.05, .reference_batch_size = 16};
  options.torch.precision = Precision::fp16;
  options.torch.loss_scale = scale;
  options.cores = 2;
  options.threads = 2;
  return options;
}

TorchTrainer half_trainer(const test::AllOptions& options, const Loss& loss = nll_loss(),
                          const ModelFactory& model = builtin_model("mlp", {})) {
  return TorchTrainer(model, loss, test::digits(128), test::trace_of({16, 32}, TraceEnd::cycle),
                      options, options.torch);
}

TEST(ReducedPrecision, LearnsAsFullPrecisionDoes) {
  const auto train = [](Precision precision, int threads = 2) {
    test::AllOptions options = TrainOptions{.epochs = 3, .learning_rate = 0.05, .threads = threads};
    options.torch.precision = precision;
    TorchTrainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), test::digits(640),
                         Trace::constant(64), options, options.torch);
    trainer.set_test(test::digits(500, 2));
    trainer.fit();
    for (const NamedTensor& named : trainer.parameters()) {
      EXPECT_EQ(named.tensor.scalar_type(), at::kFloat);
    }
    return std::pair(test::state_bytes(trainer), trainer.result().final_test->loss);
  };
  const auto [full_state, full_loss] = train(Precision::full);
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    if (precision == Precision::bf16 && !has_bf16_kernels()) {
      GTEST_SKIP() << "ONEDNN_MAX_CPU_ISA keeps oneDNN from its kernels";
    }
    const auto [state, loss] = train(precision);
    EXPECT_FALSE(full_state == state);
    // It learns as well; with weights from before an update it would not.
    EXPECT_NEAR(loss, full_loss, 0.1 * full_loss);
    EXPECT_TRUE(train(precision, 1).first == state) << "on any number of threads";
  }
  EXPECT_FALSE(libtorch::is_autocast_on());
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

// What a trainer asks for before it takes it.
TEST(Fp16, KeepsAnotherCopyOfTheWeights) {
  const test::AllOptions options = half_options();
  const TorchTrainer half = half_trainer(options);
  EXPECT_EQ(half.objective().step_bytes(), 4 * half.objective().trained().back().end);
  test::AllOptions full_options = options;
  full_options.torch.precision = Precision::full;
  const TorchTrainer full = half_trainer(full_options);
  EXPECT_EQ(full.objective().step_bytes(), 0);
}

// A network that looks at its own weights and inputs.
TEST(Fp16, ComputesWithHalvesAndUpdatesFloats) {
  std::atomic<int> forwards{0};
  std::atomic<int> of_halves{0};
  const ModelFactory model = [&] {
    Model made = builtin_model("mlp", {})();
    made.forward = [&, forward = made.forward,
                    parameters = made.parameters](const at::Tensor& input) {
      bool halves = is_half(input);
      for (const NamedTensor& named : parameters) halves = halves && is_half(named.tensor);
      ++forwards;
      if (halves) ++of_halves;
      return forward(input);
    };
    return made;
  };
  TorchTrainer trainer = half_trainer(half_options({.initial = 256}), nll_loss(), model);
  const auto recorder = test::recorded(trainer);
  EXPECT_GT(forwards, 0);
  EXPECT_EQ(of_halves, forwards);
  for (const NamedTensor& named : trainer.parameters()) {
    EXPECT_EQ(named.tensor.scalar_type(), at::kFloat);
    EXPECT_FALSE(is_half(named.tensor)) << named.name << " is a master copy";
  }
  EXPECT_EQ(trainer.result().skipped_steps, 0);
  EXPECT_EQ(recorder->steps.back().loss_scale, 256);
}

// Gradients of about 1e-9 are nothing in a float16, unless the loss is scaled.
TEST(Fp16, ScalesTheLossSoThatSmallGradientsSurvive) {
  const Loss tiny = [](const at::Tensor& output, const at::Tensor& target) {
    return nll_loss()(output, target) * 1e-7;
  };
  const auto moved = [&](double scale) {
    test::AllOptions options = half_options({.initial = scale});
    options.learning_rate = 1e5;
    TorchTrainer trainer = half_trainer(options, tiny);
    const auto before = test::copies_of(trainer.parameters());
    trainer.fit();
    double square = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      square += (trainer.parameters()[i].tensor - before[i]).square().sum().item<double>();
    }
    return square;
  };
  EXPECT_EQ(moved(1.0 / 1024), 0);
  EXPECT_GT(moved(65536), 0);
}

TEST(Fp16, SkipsStepsThatOverflowAndGoesOn) {
  TorchTrainer trainer =
      half_trainer(half_options({.initial = std::ldexp(1.0, 24), .interval = 3}));
  std::vector<std::string> weights{test::state_bytes(trainer)};
  const auto recorder = trainer.add_observer<test::Recorder>(
      [&](Training&, const StepRecord&) { weights.push_back(test::state_bytes(trainer)); });
  trainer.fit();
  const TrainResult& result = trainer.result();
  ASSERT_GT(recorder->steps.size(), 6);
  EXPECT_TRUE(recorder->steps[0].skipped);
  double scale = std::ldexp(1.0, 24);
  double iterations = 0;
  int good = 0;
  std::int64_t skipped = 0;
  for (std::size_t i = 0; i < recorder->steps.size(); ++i) {
    const StepRecord& step = recorder->steps[i];
    EXPECT_EQ(step.loss_scale, scale) << i;
    EXPECT_EQ(step.applied, !step.skipped);
    EXPECT_EQ(step.skipped, weights[i] == weights[i + 1]) << i;
    EXPECT_TRUE(std::isfinite(step.loss)) << "of the forward, which did not overflow";
    EXPECT_EQ(step.learning_rate == 0, step.skipped);
    iterations += step.gain;
    EXPECT_EQ(step.iterations, iterations);
    good = step.skipped ? 0 : good + 1;
    if (step.skipped) scale /= 2;
    if (good == 3) scale *= 2, good = 0;
    skipped += step.skipped ? 1 : 0;
  }
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, result.steps);
  EXPECT_EQ(result.skipped_steps, skipped);
  EXPECT_EQ(result.steps, static_cast<std::int64_t>(recorder->steps.size()));
}

TEST(Fp16, HasDivergedWhenTheScaleFallsBelowTheSmallest) {
  const Loss infinite = [](const at::Tensor& output, const at::Tensor& target) {
    return nll_loss()(output, target) * std::numeric_limits<double>::infinity();
  };
  TorchTrainer trainer = half_trainer(half_options({.initial = 4, .smallest = 1}), infinite);
  const auto recorder = trainer.add_observer<test::Recorder>();
  EXPECT_THAT(error_of([&] { trainer.fit(); }),
              HasSubstr("the loss scale fell below 1: step after step overflowed"));
  std::vector<double> scales;
  std::vector<bool> skipped;
  for (const StepRecord& step : recorder->steps) {
    scales.push_back(step.loss_scale.value());
    skipped.push_back(step.skipped);
  }
  EXPECT_THAT(scales, ElementsAre(4, 2, 1));
  EXPECT_THAT(skipped, ElementsAre(true, true, false));
  EXPECT_FALSE(recorder->steps.back().applied);
  EXPECT_EQ(trainer.result().skipped_steps, 2);
}

// Steps that overflow, and are left out, included.
TEST(Fp16, HasTheSameBitsWhoeverComputesAndThroughResumes) {
  test::AllOptions options = half_options({.initial = std::ldexp(1.0, 24), .interval = 2});
  options.epochs = 1;
  options.rule = "adascale";
  options.schedule = "exponential:gamma=0.9";
  options.schedule_unit = ScheduleUnit::steps;
  options.optimizer = {.momentum = 0.9, .weight_decay = 0.01};
  std::int64_t skipped = 0;
  const auto make = [&](const auto& change) {
    test::AllOptions changed = options;
    change(changed);
    TorchTrainer trainer = half_trainer(changed);
    trainer.template add_observer<test::Recorder>(
        [&](Training&, const StepRecord& step) { skipped += step.skipped ? 1 : 0; });
    return Trainer(std::move(trainer));
  };
  EXPECT_EQ(test::difference_in_bits(make, 5), std::nullopt);
  EXPECT_GT(skipped, 0);
}

TEST(Fp16, IsRefusedWhereItMeansNothing) {
  test::AllOptions options = test::options_of();
  options.torch.precision = Precision::fp16;
  EXPECT_THAT(error_of([&] { test::trainer_on(Trace::constant(16), options); }),
              HasSubstr("parameters are float64; accepted: with float32"));
  options = half_options({.backoff = 2});
  EXPECT_THAT(error_of([&] { half_trainer(options); }), HasSubstr("backoff 2"));
}

// The epoch's loss is the mean of those that are numbers.
TEST(Fp16, LeavesALossThatOverflowedOutOfTheEpochsMean) {
  int calls = 0;
  // The first calls are the trial's, of a minibatch and of its halves.
  const Loss overflows_once = [&](const at::Tensor& output, const at::Tensor& target) {
    const double factor = ++calls == 4 ? std::numeric_limits<double>::infinity() : 1;
    return nll_loss()(output, target) * factor;
  };
  test::AllOptions options = half_options({.initial = 256});
  options.epochs = 1;
  options.threads = 1;
  TorchTrainer trainer = half_trainer(options, overflows_once);
  const auto recorder = test::recorded(trainer);
  ASSERT_TRUE(recorder->steps[0].skipped);
  ASSERT_FALSE(std::isfinite(recorder->steps[0].loss));
  double sum = 0;
  double minibatches = 0;
  for (std::size_t i = 1; i < recorder->steps.size(); ++i) {
    const auto of_step = static_cast<double>(recorder->steps[i].plan.minibatches);
    sum += recorder->steps[i].loss * of_step;
    minibatches += of_step;
  }
  EXPECT_NEAR(recorder->epochs[0].train_loss, sum / minibatches, 1e-9);
}

}  // namespace
}  // namespace rubato
