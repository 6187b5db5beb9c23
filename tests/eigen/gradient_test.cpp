// Gradients against central differences, in double.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "eigen/support.hpp"
#include "support/matchers.hpp"

namespace rubato {

// In names of tests.
static std::ostream& operator<<(std::ostream& out, Activation activation) {
  return out << choice_name(kActivations, activation);
}

namespace {

using test::compute;
using test::Computed;
using test::first_samples;

struct NetworkCase {
  std::int64_t samples;
  std::int64_t features;
  std::int64_t outputs;
  std::vector<std::int64_t> hidden{};
};

// One of everything, products that Eigen computes in a way of its own (vectors, small ones), sizes
// that are no multiple of a vector, and products that are cut in all their dimensions.
const std::vector<NetworkCase>& network_cases() {
  static const std::vector<NetworkCase> all{
      {.samples = 1, .features = 1, .outputs = 1},
      {.samples = 1, .features = 7, .outputs = 3},
      {.samples = 5, .features = 3, .outputs = 1},
      {.samples = 33, .features = 20, .outputs = 10},
      {.samples = 4, .features = 3, .outputs = 2, .hidden = {1}},
      {.samples = 7, .features = 5, .outputs = 3, .hidden = {6}},
      {.samples = 9, .features = 17, .outputs = 5, .hidden = {11, 4, 16}},
      {.samples = 140, .features = 650, .outputs = 131, .hidden = {33}},
  };
  return all;
}

std::unique_ptr<ObjectiveOf<double>> network_of(const NetworkCase& c, Activation activation,
                                                bool classified) {
  auto train = classified ? test::random_classes<double>(c.samples, c.features, c.outputs)
                          : test::random_targets<double>(c.samples, c.features, c.outputs);
  if (!c.hidden.empty()) {
    return multi_layer_perceptron(train, {.hidden = c.hidden, .activation = activation});
  }
  return classified ? softmax_regression(train) : least_squares(train);
}

double central_difference(ObjectiveOf<double>& network, Evaluator<double>& evaluator,
                          std::size_t parameter, const std::vector<std::int64_t>& samples) {
  constexpr double kStep = 1e-6;
  double& value = network.flat_parameters()[parameter];
  const double before = value;
  value = before + kStep;
  const double above = compute(network, evaluator, samples).loss;
  value = before - kStep;
  const double below = compute(network, evaluator, samples).loss;
  value = before;
  return (above - below) / (2 * kStep);
}

class Gradient : public testing::TestWithParam<std::tuple<std::size_t, Activation, bool>> {};

TEST_P(Gradient, IsThatOfTheLoss) {
  const auto& [index, activation, classified] = GetParam();
  const NetworkCase& c = network_cases()[index];
  const auto network = network_of(c, activation, classified);
  const auto evaluator = network->make_evaluator();
  const std::vector<std::int64_t> samples = first_samples(c.samples);
  const Computed<double> computed = compute(*network, *evaluator, samples);
  EXPECT_GT(computed.loss, c.outputs == 1 && classified ? -1 : 0);
  std::size_t begin = 0;
  for (const TrainedArray& trained : network->trained()) {
    const std::size_t size = trained.array.size();
    // All of a small one.
    const std::size_t step = std::max<std::size_t>(1, size / 60);
    for (std::size_t i = begin; i < begin + size; i += step) {
      EXPECT_NEAR(computed.gradient[i], central_difference(*network, *evaluator, i, samples), 2e-8)
          << trained.array.name << " " << i - begin;
    }
    EXPECT_TRUE(std::all_of(computed.gradient.begin() + static_cast<std::ptrdiff_t>(begin + size),
                            computed.gradient.begin() + static_cast<std::ptrdiff_t>(trained.end),
                            [](double value) { return value == 0; }))
        << "padding";
    begin = trained.end;
  }
}

std::string name_of_case(const testing::TestParamInfo<Gradient::ParamType>& test) {
  return fmt::format("{}_{}_{}", std::get<0>(test.param),
                     choice_name(kActivations, std::get<1>(test.param)),
                     std::get<2>(test.param) ? "classes" : "targets");
}

INSTANTIATE_TEST_SUITE_P(Networks, Gradient,
                         testing::Combine(testing::Range(std::size_t{0}, network_cases().size()),
                                          testing::Values(Activation::relu, Activation::tanh),
                                          testing::Bool()),
                         name_of_case);

// One evaluator, minibatches of any size and any samples in any order, what was computed before
// playing no part; and another evaluator.
TEST(GradientOfAMinibatch, DependsOnItAlone) {
  const auto network =
      multi_layer_perceptron(test::random_classes<float>(100, 20, 10), {.hidden = {30, 17}});
  const auto evaluator = network->make_evaluator();
  const std::vector<std::vector<std::int64_t>> minibatches{
      {3, 99, 0, 41}, first_samples(100), {7}, {41, 3, 0, 99}, {5, 5, 5}};
  std::vector<Computed<float>> first;
  first.reserve(minibatches.size());
  for (const auto& samples : minibatches) first.push_back(compute(*network, *evaluator, samples));
  for (std::size_t i = minibatches.size(); i-- > 0;) {
    EXPECT_TRUE(compute(*network, *evaluator, minibatches[i]) == first[i]) << i;
    EXPECT_TRUE(compute(*network, minibatches[i]) == first[i]) << i;
  }
  EXPECT_FALSE(first[0] == first[2]);
}

TEST(GradientOfAMinibatch, IsTheMeanOverItsSamples) {
  const auto network = multi_layer_perceptron(test::random_targets<double>(6, 4, 3),
                                              {.hidden = {5}, .activation = Activation::tanh});
  const Computed<double> all = compute(*network, first_samples(6));
  Computed<double> mean;
  mean.gradient.resize(all.gradient.size());
  for (std::int64_t sample = 0; sample < 6; ++sample) {
    const Computed<double> one = compute(*network, std::vector{sample});
    mean.loss += one.loss / 6;
    for (std::size_t i = 0; i < all.gradient.size(); ++i) mean.gradient[i] += one.gradient[i] / 6;
  }
  EXPECT_NEAR(all.loss, mean.loss, 1e-14);
  EXPECT_THAT(all.gradient, Pointwise(DoubleNear(1e-14), mean.gradient));
}

TEST(GradientOfAMinibatch, IsTheSameInFloatToRounding) {
  const auto of_double = multi_layer_perceptron(test::random_classes<double>(64, 50, 10),
                                                {.hidden = {40}, .activation = Activation::tanh});
  const auto of_float = multi_layer_perceptron(test::random_classes<float>(64, 50, 10),
                                               {.hidden = {40}, .activation = Activation::tanh});
  for (std::size_t a = 0; a < of_double->parameters().size(); ++a) {
    const auto from = of_double->parameters()[a].values<double>();
    const auto to = of_float->parameters()[a].values<float>();
    std::transform(from.begin(), from.end(), to.begin(),
                   [](double value) { return static_cast<float>(value); });
  }
  const Computed<double> wide = compute(*of_double, first_samples(64));
  const Computed<float> narrow = compute(*of_float, first_samples(64));
  EXPECT_NEAR(narrow.loss, wide.loss, 1e-6);
  std::size_t begin_wide = 0;
  std::size_t begin_narrow = 0;
  for (std::size_t a = 0; a < of_double->trained().size(); ++a) {
    for (std::size_t i = 0; i < of_double->parameters()[a].size(); ++i) {
      EXPECT_NEAR(narrow.gradient[begin_narrow + i], wide.gradient[begin_wide + i], 1e-7) << i;
    }
    begin_wide = of_double->trained()[a].end;
    begin_narrow = of_float->trained()[a].end;
  }
}

// Outputs of thousands: the exponentials of none overflow, and what cannot be computed is not
// hidden.
TEST(GradientOfAMinibatch, OfLargeOutputsAndOfNaN) {
  const auto network = softmax_regression(DenseDataset<float>::classified({1, 1}, {0, 1}, 3));
  const auto weights = network->parameters()[0].values<float>();
  const auto biases = network->parameters()[1].values<float>();
  std::fill(weights.begin(), weights.end(), 0.0F);
  std::copy_n(std::vector{5000.0F, 4990.0F, -6000.0F}.begin(), 3, biases.begin());
  const Computed<float> computed = compute(*network, first_samples(2));
  // log(1 + e^-10), and 10 more for the second.
  EXPECT_NEAR(computed.loss, 5 + std::log1p(std::exp(-10.0)), 1e-9);
  const std::size_t of_biases = network->trained()[0].end;
  EXPECT_NEAR(computed.gradient[of_biases], 0.5, 1e-4);
  EXPECT_NEAR(computed.gradient[of_biases + 1], -0.5, 1e-4);
  for (std::size_t i = 0; i < 3; ++i) {
    biases[i] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(compute(*network, first_samples(2)).loss)) << i;
    biases[i] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(compute(*network, first_samples(2)).loss)) << i;
    biases[i] = 0;
  }
}

TEST(GradientOfAMinibatch, PassesNaNThroughActivations) {
  for (const auto& activation : kActivations) {
    auto train =
        DenseDataset<float>::classified({1, std::numeric_limits<float>::quiet_NaN()}, {0, 1}, 2);
    const auto network =
        multi_layer_perceptron(train, {.hidden = {3}, .activation = activation.value});
    EXPECT_TRUE(std::isfinite(compute(*network, std::vector<std::int64_t>{0}).loss));
    EXPECT_TRUE(std::isnan(compute(*network, first_samples(2)).loss)) << activation.name;
  }
}

}  // namespace
}  // namespace rubato
