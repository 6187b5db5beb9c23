#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "eigen/support.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

using test::error_of;
using testing::HasSubstr;

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
  EXPECT_THAT(trained, testing::Each(testing::FloatNear(31.5F, 0.1F)));
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
              testing::MatchesRegex("loss of minibatch . of 2 at epoch 1, step 1.*: no more "
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

TEST(FunctionObjective, IsKnownByItsFingerprint) {
  FunctionParts<float> parts = parts_of();
  parts.fingerprint = "distances, of July";
  EXPECT_EQ(function_objective(std::move(parts))->fingerprint(), "distances, of July");
}

}  // namespace
}  // namespace rubato
