#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "eigen/support.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// Its outputs are the inputs.
template <class T>
std::unique_ptr<ObjectiveOf<T>> identity(const DenseDataset<T>& test) {
  auto network = test.is_classified() ? softmax_regression(test, {.test = test})
                                      : least_squares(test, {.test = test});
  std::fill(network->flat_parameters().begin(), network->flat_parameters().end(), T{0});
  const auto weights = network->parameters()[0].template values<T>();
  const auto features = static_cast<std::size_t>(test.features());
  for (std::size_t i = 0; i < features; ++i) weights[i * features + i] = 1;
  return network;
}

template <class T>
Evaluation evaluated(const DenseDataset<T>& test, std::int64_t top_k = 0, int threads = 1) {
  Workers workers(threads);
  return identity(test)->test(workers, {.top_k = top_k}, "");
}

TEST(DenseEvaluation, OfClasses) {
  // The class is the largest output, the second, the last; the first of two equal ones, the other.
  const auto test = DenseDataset<double>::classified({3, 2, 1,  //
                                                      3, 2, 1,  //
                                                      3, 2, 1,  //
                                                      1, 5, 5,  //
                                                      1, 5, 5},
                                                     {0, 1, 2, 1, 2}, 3);
  const Evaluation one = evaluated(test, 1);
  EXPECT_EQ(one.samples, 5);
  EXPECT_THAT(one.accuracy, Optional(2.0 / 5));
  EXPECT_THAT(one.top_k_accuracy, one.accuracy);
  const double three = std::log(std::exp(3.0) + std::exp(2.0) + std::exp(1.0));
  const double two = std::log(2 * std::exp(5.0) + std::exp(1.0));
  EXPECT_NEAR(one.loss, (3 * three - 6 + 2 * (two - 5)) / 5, 1e-14);
  EXPECT_THAT(evaluated(test, 2).top_k_accuracy, Optional(4.0 / 5));
  EXPECT_THAT(evaluated(test, 3).top_k_accuracy, Optional(1.0));
  EXPECT_THAT(evaluated(test, 30).top_k_accuracy, Optional(1.0)) << "of three";
  EXPECT_EQ(evaluated(test).top_k_accuracy, std::nullopt);
}

TEST(DenseEvaluation, NeverCountsNaNAsCorrect) {
  const auto test = DenseDataset<double>::classified({3, 2, 1, 3, 2, 1, 3, 2, 1}, {0, 1, 2}, 3);
  for (const std::size_t first_of_nan : {0U, 2U}) {
    const auto network = identity(test);
    const auto biases = network->parameters()[1].values<double>();
    for (std::size_t i = first_of_nan; i < biases.size(); ++i) biases[i] = std::nan("");
    Workers workers(1);
    const Evaluation evaluation = network->test(workers, {.top_k = 30}, "");
    EXPECT_THAT(evaluation.accuracy, Optional(0.0));
    EXPECT_THAT(evaluation.top_k_accuracy, Optional(0.0));
  }
}

TEST(DenseEvaluation, OfTargets) {
  const auto test = DenseDataset<double>::with_targets({1, 2, 3, 4}, {1, 1, 5, 4}, 2);
  const Evaluation evaluation = evaluated(test, 2);
  EXPECT_THAT(evaluation.loss, DoubleNear((1 + 4) / 4.0, 1e-15));
  EXPECT_EQ(evaluation.accuracy, std::nullopt);
  EXPECT_EQ(evaluation.top_k_accuracy, std::nullopt);
}

// More than a batch of 250, and one that is not full.
TEST(DenseEvaluation, IsTheSameForEveryNumberOfThreads) {
  const auto test = test::random_classes<float>(1'111, 10, 10);
  const Evaluation expected = evaluated(test, 3);
  EXPECT_EQ(expected.samples, 1'111);
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < 1'111; ++i) {
    const auto row = test.inputs().subspan(i * 10, 10);
    correct += std::max_element(row.begin(), row.end()) - row.begin() == test.classes()[i] ? 1 : 0;
  }
  EXPECT_THAT(expected.accuracy, Optional(static_cast<double>(correct) / 1'111));
  for (const int threads : {2, 4}) {
    const Evaluation evaluation = evaluated(test, 3, threads);
    EXPECT_EQ(evaluation.loss, expected.loss);
    EXPECT_EQ(evaluation.accuracy, expected.accuracy);
    EXPECT_EQ(evaluation.top_k_accuracy, expected.top_k_accuracy);
  }
}

// It leaves nothing behind.
TEST(DenseEvaluation, ChangesNoGradient) {
  const auto test = test::random_classes<float>(300, 10, 10);
  const auto network = identity(test);
  const auto evaluator = network->make_evaluator();
  const auto samples = test::first_samples(40);
  const auto before = test::compute(*network, *evaluator, samples);
  Workers workers(2);
  EXPECT_GT(network->test(workers, {}, "").loss, 0);
  EXPECT_TRUE(test::compute(*network, *evaluator, samples) == before);
}

}  // namespace
}  // namespace rubato
