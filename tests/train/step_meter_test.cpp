// The norms of a step, against those computed by hand.

#include "loop/train/step/step_meter.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
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

// A metric of (1, 2, 3, 4), of which the optimizer has none before its first update.
class Measured final : public FlatOptimizer<double> {
 public:
  void step(const Update<double>& /*update*/, Workers& /*workers*/) override { ++steps_; }
  void visit_state(StateVisitor& /*state*/) override {}
  [[nodiscard]] bool fill_metric(std::span<double> diagonal, Workers& /*workers*/) const override {
    std::iota(diagonal.begin(), diagonal.end(), 1);
    return steps_ > 0;
  }

 private:
  int steps_ = 0;
};

TEST(StepMeter, MeasuresInTheMetricOfTheOptimizerToo) {
  Workers workers(2);
  StepMeter<double> meter(two_groups(), {.groups = true, .metric = true}, {0, 0});
  EXPECT_EQ(meter.blocks_of_sum().squares(), 4U);
  Measured optimizer;
  std::array<double, 4> values{3, 6, 9, 12};
  std::array<double, 4> squares{30, 60, 90, 900};
  PartialSum<double> partial{.values = values, .scalars = {}, .squares = squares};
  meter.begin_step(optimizer, workers);
  EXPECT_TRUE(meter.measure({partial, {}}, 3, kWeights, workers));
  EXPECT_TRUE(meter.metric_groups().empty());
  optimizer.step({}, workers);
  meter.begin_step(optimizer, workers);
  EXPECT_TRUE(meter.measure({partial, {}}, 3, kWeights, workers));
  EXPECT_DOUBLE_EQ(meter.groups()[1].minibatch_square, 30);
  EXPECT_DOUBLE_EQ(meter.groups()[1].mean_square, 25);
  ASSERT_EQ(meter.metric_groups().size(), 2U);
  EXPECT_DOUBLE_EQ(meter.metric_groups()[0].minibatch_square, 20);
  EXPECT_DOUBLE_EQ(meter.metric_groups()[0].mean_square, 1 + 16);
  EXPECT_DOUBLE_EQ(meter.metric_groups()[1].minibatch_square, 300);
  EXPECT_DOUBLE_EQ(meter.metric_groups()[1].mean_square, 81 + 256);
}

// Both gradients of a pair are measured in the metric of the later step.
TEST(StepMeter, MeasuresPairsInTheMetricToo) {
  Workers workers(1);
  StepMeter<double> meter(two_groups(), {.groups = true, .metric = true}, {0, 0});
  Measured optimizer;
  for (const std::array<double, 4>& gradient :
       {std::array<double, 4>{1, 1, 1, 1}, std::array<double, 4>{3, 1, 1, -1}}) {
    meter.begin_step(optimizer, workers);
    std::array<double, 4> values = gradient;
    std::array<double, 4> squares{};
    PartialSum<double> partial{.values = values, .scalars = {}, .squares = squares};
    EXPECT_TRUE(meter.measure({partial, {}}, 1, kWeights, workers));
    meter.keep();
    optimizer.step({}, workers);
  }
  ASSERT_TRUE(meter.from_pair());
  EXPECT_DOUBLE_EQ(meter.groups()[0].minibatch_square, (2.0 + 10) / 2);
  EXPECT_DOUBLE_EQ(meter.metric_groups()[0].minibatch_square, (5.0 + 13) / 2);
  EXPECT_DOUBLE_EQ(meter.metric_groups()[0].mean_square, 4 + 4);
  EXPECT_DOUBLE_EQ(meter.metric_groups()[1].minibatch_square, 25);
  EXPECT_DOUBLE_EQ(meter.metric_groups()[1].mean_square, 9);
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
