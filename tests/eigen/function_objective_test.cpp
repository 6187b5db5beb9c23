#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "eigen/support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

// The mean of (p - sample)^2 / 2, for each of two parameters.
double distance_from_mean(std::span<const float> parameters, std::span<const std::int64_t> samples,
                          std::span<float> gradient) {
  EXPECT_EQ(parameters.size(), 2U);
  EXPECT_EQ(gradient.size(), 2U) << "without padding";
  double sum = 0;
  const auto count = static_cast<float>(samples.size());
  for (const std::int64_t sample : samples) {
    for (std::size_t i = 0; i < 2; ++i) {
      const float error = parameters[i] - static_cast<float>(sample);
      sum += static_cast<double>(error * error / 2 / count);
      gradient[i] += error / count;
    }
  }
  return sum;
}

FunctionParts<float> parts_of() {
  return {.initial = {1, 2}, .samples = 64, .value_and_gradient = distance_from_mean};
}

TrainOptions options_of() {
  return {.epochs = 50,
          .minibatch_size = 4,
          .learning_rate = 0.1,
          .reference_batch_size = 64,
          .threads = 2};
}

TEST(FunctionObjective, IsMinimised) {
  FunctionParts<float> parts = parts_of();
  parts.test = [](std::span<const float> parameters) {
    return Evaluation{.samples = 1, .loss = static_cast<double>(parameters[1])};
  };
  Trainer trainer(function_objective(std::move(parts)), Trace::constant(64), options_of());
  const TrainResult result = trainer.fit();
  ASSERT_EQ(trainer.parameters().size(), 1U);
  EXPECT_EQ(trainer.parameters()[0].name, "parameters");
  const auto trained = trainer.parameters()[0].values<float>();
  EXPECT_THAT(trained, Each(testing::FloatNear(31.5F, 0.1F)));
  EXPECT_EQ(result.final_test->loss, static_cast<double>(trained[1]));
}

TEST(FunctionObjective, NeedsNoTest) {
  Trainer trainer(function_objective(parts_of()), Trace::constant(64), options_of());
  EXPECT_FALSE(trainer.fit().final_test.has_value());
}

TEST(FunctionObjective, SaysWhereItThrew) {
  FunctionParts<float> parts = parts_of();
  parts.value_and_gradient = [](std::span<const float>, std::span<const std::int64_t>,
                                std::span<float>) -> double {
    throw std::runtime_error("no more numbers");
  };
  Trainer trainer(function_objective(std::move(parts)), Trace::constant(8), options_of());
  EXPECT_THAT(error_of([&] { trainer.fit(); }),
              MatchesRegex("loss of minibatch . of 2 at epoch 1, step 1.*: no more "
                           "numbers"));
  parts = parts_of();
  parts.test = [](std::span<const float>) -> Evaluation {
    throw std::runtime_error("nothing to test");
  };
  Trainer tested(function_objective(std::move(parts)), Trace::constant(8), options_of());
  EXPECT_THAT(error_of([&] { tested.fit(); }),
              HasSubstr("evaluation of all of the test data after epoch 1: nothing to test"));
}

TEST(FunctionObjective, IsStoppedWhereItDiverges) {
  FunctionParts<float> parts = parts_of();
  parts.value_and_gradient = [](std::span<const float>, std::span<const std::int64_t>,
                                std::span<float>) { return std::nan(""); };
  Trainer trainer(function_objective(std::move(parts)), Trace::constant(8), options_of());
  EXPECT_THROW(trainer.fit(), Diverged);
}

TEST(FunctionObjective, SaysWhatIsMissing) {
  const auto error_without = [](auto change) {
    FunctionParts<float> parts = parts_of();
    change(parts);
    return error_of([&] { return function_objective(parts); });
  };
  EXPECT_THAT(error_without([](auto& parts) { parts.initial.clear(); }),
              HasSubstr("without parameters; accepted: initial values for at least one"));
  EXPECT_THAT(error_without([](auto& parts) { parts.samples = 0; }),
              HasSubstr("of 0 samples; accepted: at least 1"));
  EXPECT_THAT(error_without([](auto& parts) { parts.value_and_gradient = nullptr; }),
              HasSubstr("without value_and_gradient"));
}

// Of every third sample, none; the others weigh 1 and 2.
double weight_of(std::int64_t sample) {
  return static_cast<double>(sample % 3);
}

double sum_of_weights(std::span<const std::int64_t> samples) {
  double sum = 0;
  for (const std::int64_t sample : samples) sum += weight_of(sample);
  return sum;
}

// The sum over samples of weight (p - sin(sample))^2 / 2, for each of two parameters; the mean
// where all weigh 1.
FunctionParts<double> weighted_parts(bool weighted = true) {
  FunctionParts<double> parts{.initial = {1, 2}, .samples = 60};
  parts.value_and_gradient = [weighted](std::span<const double> parameters,
                                        std::span<const std::int64_t> samples,
                                        std::span<double> gradient) {
    double sum = 0;
    const double count = weighted ? 1 : static_cast<double>(samples.size());
    for (const std::int64_t sample : samples) {
      const double weight = (weighted ? weight_of(sample) : 1) / count;
      for (std::size_t i = 0; i < 2; ++i) {
        const double error = parameters[i] - std::sin(static_cast<double>(sample));
        sum += weight * error * error / 2;
        gradient[i] += weight * error;
      }
    }
    return sum;
  };
  if (weighted) parts.weight = sum_of_weights;
  return parts;
}

// A mean over weights is that of the whole step, however it is divided into minibatches.
TEST(WeightedLoss, IsTheMeanOverTheWeightsOfTheStep) {
  double loss = 0;
  double weight = 0;
  std::vector<double> expected{0, 0};
  for (std::int64_t sample = 0; sample < 60; ++sample) {
    weight += weight_of(sample);
    for (std::size_t i = 0; i < 2; ++i) {
      const double error = (i == 0 ? 1 : 2) - std::sin(static_cast<double>(sample));
      loss += weight_of(sample) * error * error / 2;
      expected[i] += weight_of(sample) * error;
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    expected[i] = static_cast<double>(i + 1) - 0.1 * expected[i] / weight;
  }
  for (const std::int64_t minibatch : {60, 12, 5, 1}) {
    TrainOptions options = options_of();
    options.epochs = 1;
    options.minibatch_size = minibatch;
    options.reference_batch_size = 60;
    Trainer trainer(function_objective(weighted_parts()), Trace::constant(60), options);
    const auto recorder = test::recorded(trainer);
    const auto found = trainer.parameters()[0].values<double>();
    EXPECT_THAT(found, Pointwise(DoubleNear(1e-14), expected)) << minibatch;
    EXPECT_NEAR(recorder->steps.at(0).loss, loss / weight, 1e-14);
    EXPECT_EQ(recorder->steps.at(0).weight, weight);
    EXPECT_NEAR(recorder->epochs.at(0).train_loss, loss / weight, 1e-14);
  }
}

TrainOptions adaptive_options() {
  TrainOptions options{.epochs = 2,
                       .minibatch_size = 4,
                       .remainder = Remainder::carry,
                       .learning_rate = 0.05,
                       .reference_batch_size = 4,
                       .rule = "adascale",
                       .optimizer = {.method = AdamOptions{}},
                       .clip_norm = 0.5,
                       .threads = 2};
  options.log_noise = true;
  return options;
}

// Statistics of gradients, clipping and all: weights that are those of means change nothing.
TEST(WeightedLoss, OfSamplesThatWeighAlikeIsTheMean) {
  const auto train = [](double weight) {
    FunctionParts<double> parts = weighted_parts(/*weighted=*/false);
    // The last minibatch has two samples.
    parts.samples = 61;
    if (weight > 0) {
      parts.weight = [weight](std::span<const std::int64_t> samples) {
        return weight * static_cast<double>(samples.size());
      };
      parts.value_and_gradient = [weight, mean = parts.value_and_gradient](
                                     std::span<const double> parameters,
                                     std::span<const std::int64_t> samples,
                                     std::span<double> gradient) {
        const double loss = mean(parameters, samples, gradient);
        const double all = weight * static_cast<double>(samples.size());
        for (double& value : gradient) value *= all;
        return loss * all;
      };
    }
    TrainOptions options = adaptive_options();
    options.log_minibatches = true;
    Trainer trainer(function_objective(std::move(parts)), test::trace_of({4, 12, 16, 4, 4, 8}),
                    options);
    const auto recorder = test::recorded(trainer);
    std::vector<double> numbers;
    for (const StepRecord& step : recorder->steps) {
      for (const double number : {step.loss, step.learning_rate, step.gradient_norm.value(),
                                  step.noise_scale.value_or(-1), step.measured_gain.value_or(-1)}) {
        numbers.push_back(number);
      }
      for (const MinibatchRecord& minibatch : step.minibatches) {
        numbers.push_back(minibatch.loss);
        numbers.push_back(minibatch.gradient_norm);
      }
    }
    for (const EpochRecord& epoch : recorder->epochs) numbers.push_back(epoch.train_loss);
    const auto parameters = trainer.parameters()[0].values<double>();
    numbers.insert(numbers.end(), parameters.begin(), parameters.end());
    return numbers;
  };
  const std::vector<double> expected = train(0);
  EXPECT_GT(expected.size(), 100U);
  for (const double weight : {1.0, 7.0}) {
    const std::vector<double> found = train(weight);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i]))) << i;
    }
  }
}

TEST(WeightedLoss, HasTheSameBitsInEveryWayAndOnSeveralHosts) {
  const auto make = [](const std::function<void(TrainOptions&)>& change) {
    TrainOptions options = adaptive_options();
    change(options);
    FunctionParts<double> parts = weighted_parts();
    parts.samples = 61;
    return Trainer(function_objective(std::move(parts)), test::trace_of({4, 12, 16, 4, 4, 8}),
                   options);
  };
  for (const ExecutionOutcome& outcome : verify(make, adaptive_options(), 15)) {
    EXPECT_EQ(outcome.difference.value_or("none"), "none") << outcome.execution.what;
  }
  // The eighth step goes on in the second epoch, whose loss begins with a part of its.
  Verification verification(make, 16);
  static_cast<void>(verification.train({}));
  EXPECT_EQ(verification.train({.what = "resumed", .resume_after = 8}).difference.value_or("none"),
            "none");
  Trainer alone = make([](TrainOptions&) {});
  alone.fit();
  std::vector<std::thread> threads;
  for (std::shared_ptr<Hosts>& host : test::emulated_hosts({1, 3})) {
    threads.emplace_back([&, host = std::move(host)]() mutable {
      Trainer trainer = make([&](TrainOptions& options) { options.hosts = std::move(host); });
      EXPECT_EQ(error_of([&] { trainer.fit(); }), "no error");
      EXPECT_EQ(test::difference_of(alone, trainer).value_or("none"), "none");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A step in which nothing has weight is left out, and is no divergence.
TEST(WeightedLoss, SkipsAStepWithoutWeight) {
  FunctionParts<double> parts = weighted_parts();
  const auto none_of_zero = [](std::span<const std::int64_t> samples) {
    return std::ranges::find(samples, 0) != samples.end() ? 0.0 : sum_of_weights(samples) + 1;
  };
  parts.weight = none_of_zero;
  TrainOptions options = options_of();
  options.epochs = 1;
  options.minibatch_size = options.reference_batch_size = 4;
  options.optimizer = {.momentum = 0.9, .weight_decay = 0.1};
  Trainer trainer(function_objective(std::move(parts)), Trace::constant(4), options);
  std::vector<double> before;
  bool found = false;
  const auto recorder =
      trainer.add_observer<test::Recorder>([&](Training& training, const StepRecord& step) {
        const auto now = training.parameters()[0].values<double>();
        if (step.skipped) {
          EXPECT_THAT(now, testing::ElementsAreArray(before));
          EXPECT_EQ(step.weight, 0.0);
          EXPECT_EQ(step.gain, 0);
          EXPECT_FALSE(step.applied);
          EXPECT_TRUE(std::isnan(step.loss));
          EXPECT_FALSE(std::exchange(found, true));
        }
        before.assign(now.begin(), now.end());
      });
  const TrainResult result = trainer.fit();
  EXPECT_TRUE(found);
  EXPECT_EQ(result.skipped_steps, 1);
  EXPECT_EQ(result.iterations, 14);
  double loss = 0;
  double weight = 0;
  for (const StepRecord& step : recorder->steps) {
    if (step.applied) loss += step.loss * step.weight.value();
    weight += step.weight.value();
  }
  EXPECT_NEAR(recorder->epochs.at(0).train_loss, loss / weight, 1e-12);
}

TEST(WeightedLoss, RefusesWhatIsNoWeightAndOneThatSomeMinibatchesHave) {
  const auto error = [](const std::function<double(std::int64_t)>& weight) {
    FunctionParts<double> parts = weighted_parts();
    parts.weight = [weight](std::span<const std::int64_t> samples) { return weight(samples[0]); };
    TrainOptions options = options_of();
    options.minibatch_size = 1;
    Trainer trainer(function_objective(std::move(parts)), Trace::constant(60), options);
    return error_of([&] { trainer.fit(); });
  };
  EXPECT_THAT(error([](std::int64_t sample) { return sample == 7 ? -1.0 : 1.0; }),
              MatchesRegex("loss of minibatch .* of 60 at epoch 1, step 1 of the run: the "
                           "loss has a weight of -1; accepted: a finite one of at least 0"));
  EXPECT_THAT(error([](std::int64_t) { return std::nan(""); }), HasSubstr("a weight of NaN"));
}

TEST(FunctionObjective, IsKnownByItsFingerprint) {
  FunctionParts<float> parts = parts_of();
  parts.fingerprint = "distances, of July";
  EXPECT_EQ(function_objective(std::move(parts))->fingerprint(), "distances, of July");
}

}  // namespace
}  // namespace rubato
