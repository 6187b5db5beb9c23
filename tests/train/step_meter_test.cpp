// The norms of a step, against those computed by hand.

#include "loop/train/step/step_meter.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>

namespace rubato {
namespace {

// Two tensors of two values, each of a group of its own.
const ParameterLayout& two_groups() {
  static const ParameterLayout layout{.layer_ends = {2, 4}, .layer_groups = {0, 1}};
  return layout;
}

// A sum over minibatches, whose squared norms come along.
struct Sum {
  std::array<double, 4> values{};
  std::array<double, 2> squares{};
  PartialSum<double> partial{.values = values, .scalars = {}, .squares = squares};

  [[nodiscard]] StepSum<double> of_step() { return {partial, {}}; }
};

constexpr std::array<double, 4> kWeights{1, 2, 2, 4};

// Of three minibatches, whose gradients sum to (3, 6, 9, 12).
TEST(StepMeter, NormsAreOfTheMeanOfTheMinibatches) {
  Sum sum{.values = {3, 6, 9, 12}, .squares = {30, 90}};
  Workers workers(2);
  StepMeter<double> meter(two_groups(), {.groups = true, .layers = true, .norm = true}, {0.5, 0});
  EXPECT_TRUE(meter.measure(sum.of_step(), 3, kWeights, workers));
  ASSERT_EQ(meter.groups().size(), 2U);
  EXPECT_DOUBLE_EQ(meter.groups()[0].minibatch_square, 10);
  EXPECT_DOUBLE_EQ(meter.groups()[1].minibatch_square, 30);
  EXPECT_DOUBLE_EQ(meter.groups()[0].mean_square, 5);
  EXPECT_DOUBLE_EQ(meter.groups()[1].mean_square, 25);
  EXPECT_FALSE(meter.from_pair());
  EXPECT_DOUBLE_EQ(meter.gradient_norm().value(), std::sqrt(30));
  ASSERT_EQ(meter.layers().size(), 2U);
  EXPECT_DOUBLE_EQ(meter.layers()[0].gradient_square, 5);
  EXPECT_DOUBLE_EQ(meter.layers()[1].gradient_square, 25);
  EXPECT_DOUBLE_EQ(meter.layers()[0].weight_square, 5);
  EXPECT_DOUBLE_EQ(meter.layers()[1].weight_square, 20);
  EXPECT_EQ(meter.layers()[0].weight_decay, 0.5);
  EXPECT_EQ(meter.layers()[1].weight_decay, 0);
}

// Clipping makes the factor less than one over the minibatches; a transform changes the sum.
TEST(StepMeter, LayersAreOfWhatIsApplied) {
  Sum sum{.values = {3, 6, 9, 12}, .squares = {30, 90}};
  Workers workers(1);
  StepMeter<double> meter(two_groups(), {.layers = true}, {0, 0});
  EXPECT_TRUE(meter.measure(sum.of_step(), 3, kWeights, workers));
  meter.set_applied(0.25, {}, workers);
  EXPECT_DOUBLE_EQ(meter.layers()[0].gradient_square, 45.0 / 16);
  EXPECT_DOUBLE_EQ(meter.layers()[1].gradient_square, 225.0 / 16);
  meter.set_applied(0.5, std::vector{4.0, 0.0, 0.0, 8.0}, workers);
  EXPECT_DOUBLE_EQ(meter.layers()[0].gradient_square, 4);
  EXPECT_DOUBLE_EQ(meter.layers()[1].gradient_square, 16);
}

TEST(StepMeter, ASquareThatOverflowsIsOfAFiniteGradient) {
  Workers workers(1);
  StepMeter<double> meter(two_groups(), {.norm = true}, {0, 0});
  Sum large{.values = {1e200, 0, 0, 0}, .squares = {}};
  EXPECT_TRUE(meter.measure(large.of_step(), 1, kWeights, workers));
  Sum infinite{.values = {0, 0, 0, std::numeric_limits<double>::infinity()}, .squares = {}};
  EXPECT_FALSE(meter.measure(infinite.of_step(), 1, kWeights, workers));
}

}  // namespace
}  // namespace rubato
