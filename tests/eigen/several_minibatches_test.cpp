// Several minibatches in one pass: the bits of one after the other, and of the sums of those in the
// order of a summation tree.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "eigen/all_kernels.hpp"
#include "loop/eigen/dense_pass.hpp"
#include "numbers/collective/summation_tree.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::all_kernels;
using test::random_values;

// Parameters of a network with these widths, and the network.
template <class T>
struct DrawnNetwork {
  DrawnNetwork(const std::vector<std::ptrdiff_t>& widths, Activation activation,
               const dense::Kernels<T>& kernels) {
    std::size_t size = 0;
    const auto take = [&size](std::ptrdiff_t values) {
      const std::size_t begin = size;
      size += (static_cast<std::size_t>(values) + 15) / 16 * 16;
      return begin;
    };
    for (std::size_t l = 1; l < widths.size(); ++l) {
      const std::size_t weights = take(widths[l - 1] * widths[l]);
      model.layers.push_back({.inputs = widths[l - 1],
                              .outputs = widths[l],
                              .weights = weights,
                              .biases = take(widths[l])});
    }
    parameters = AlignedValues<T>(size);
    const std::vector<T> values = random_values<T>(size, 5);
    std::transform(values.begin(), values.end(), parameters.data(),
                   [](T value) { return value / 4; });
    model.activation = activation;
    model.parameters = parameters.data();
    model.kernels = kernels;
  }

  AlignedValues<T> parameters{};
  DenseModel<T> model{};
};

template <class T>
struct Result {
  std::vector<T> gradient;
  std::vector<double> losses;
};

template <class T>
Result<T> together(const DrawnNetwork<T>& network, const DenseDataset<T>& data,
                   const std::vector<std::int64_t>& samples, std::size_t minibatches) {
  DensePass<T> pass(network.model);
  Result<T> result{.gradient = {}, .losses = std::vector<double>(minibatches)};
  AlignedValues<T> gradient(network.parameters.size());
  // All but the padding is overwritten.
  constexpr T kAnything = std::numeric_limits<T>::quiet_NaN();
  for (const dense::Layer& layer : network.model.layers) {
    std::fill_n(gradient.data() + layer.weights, layer.inputs * layer.outputs, kAnything);
    std::fill_n(gradient.data() + layer.biases, layer.outputs, kAnything);
  }
  pass.gather(data, samples, minibatches);
  pass.forward();
  pass.losses(result.losses);
  pass.backward(gradient.data());
  result.gradient.assign(gradient.data(), gradient.data() + gradient.size());
  return result;
}

template <class T>
std::vector<T> sum_below(const SummationTree& tree, TreeNode node,
                         const std::vector<Result<T>>& leaves) {
  if (node.level == 0) return leaves[static_cast<std::size_t>(node.index)].gradient;
  std::vector<T> sum = sum_below(tree, node.left(), leaves);
  if (!tree.contains(node.right())) return sum;
  const std::vector<T> right = sum_below(tree, node.right(), leaves);
  std::transform(sum.begin(), sum.end(), right.begin(), sum.begin(), std::plus<>());
  return sum;
}

template <class T>
void expect_the_same(const DrawnNetwork<T>& network, const DenseDataset<T>& data, std::int64_t size,
                     std::int64_t count) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(size * count));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<std::int64_t>(i * 7 % static_cast<std::size_t>(data.samples()));
  }
  const Result<T> all = together(network, data, samples, static_cast<std::size_t>(count));
  std::vector<Result<T>> leaves;
  for (std::int64_t m = 0; m < count; ++m) {
    const auto first = samples.begin() + m * size;
    leaves.push_back(together(network, data, {first, first + size}, 1));
    EXPECT_EQ(all.losses[static_cast<std::size_t>(m)], leaves.back().losses.front());
  }
  const SummationTree tree(count);
  EXPECT_TRUE(all.gradient == sum_below(tree, {tree.height(), 0}, leaves));
}

// AddressSanitizer sees whoever writes beyond what an earlier pass needed.
TEST(DensePass, HasRoomForOneSampleMoreThanBefore) {
  const auto data = DenseDataset<float>::with_targets(random_values<float>(20, 3),
                                                      random_values<float>(10, 4), 2);
  for (const auto& [name, kernels] : all_kernels<float>()) {
    const DrawnNetwork<float> network({4, 16, 2}, Activation::tanh, kernels);
    DensePass<float> grown(network.model);
    for (std::int64_t samples = 1; samples <= 5; ++samples) {
      DensePass<float> fresh(network.model);
      for (DensePass<float>* const pass : {&grown, &fresh}) {
        pass->take(data, 0, samples);
        pass->forward();
      }
      EXPECT_EQ(grown.loss(), fresh.loss()) << name << ", " << samples << " samples";
    }
  }
}

template <class T>
class SeveralMinibatches : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SeveralMinibatches, Types);

TYPED_TEST(SeveralMinibatches, HaveTheBitsOfOneAfterTheOther) {
  using T = TypeParam;
  constexpr std::int64_t kSamples = 97;
  for (const auto& [name, kernels] : all_kernels<T>()) {
    for (const std::vector<std::ptrdiff_t>& widths :
         {std::vector<std::ptrdiff_t>{20, 3}, {53, 70, 9, 10}, {300, 150, 33}}) {
      const auto data = DenseDataset<T>::with_targets(
          random_values<T>(static_cast<std::size_t>(kSamples * widths.front()), 3),
          random_values<T>(static_cast<std::size_t>(kSamples * widths.back()), 4), widths.back());
      const DrawnNetwork<T> network(widths, Activation::tanh, kernels);
      for (const std::int64_t size : {1, 7, 32}) {
        for (const std::int64_t count : {2, 3, 5, 8, 13, 32}) {
          SCOPED_TRACE(name + ", " + std::to_string(widths.front()) + " inputs, " +
                       std::to_string(count) + " minibatches of " + std::to_string(size));
          expect_the_same(network, data, size, count);
        }
      }
    }
  }
}

// As many as a pass takes, and the largest minibatch.
TYPED_TEST(SeveralMinibatches, GoUpToTheMostThatThereIsRoomFor) {
  using T = TypeParam;
  EXPECT_EQ(DensePass<T>::minibatches_at_once(1), 1024);
  EXPECT_EQ(DensePass<T>::minibatches_at_once(264), 3);
  EXPECT_EQ(DensePass<T>::minibatches_at_once(265), 1);
  std::vector<std::int64_t> classes(40);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int64_t>(i % 10);
  const auto data = DenseDataset<T>::classified(random_values<T>(40 * 60, 3), classes, 10);
  for (const auto& [name, kernels] : all_kernels<T>()) {
    SCOPED_TRACE(name);
    const DrawnNetwork<T> network({60, 129, 10}, Activation::relu, kernels);
    expect_the_same(network, data, 1, 1024);
    expect_the_same(network, data, 264, 3);
  }
}

// -0 of an underflow is 0 in a sum that begins with 0.
TYPED_TEST(SeveralMinibatches, HaveNoNegativeZeroOfAnUnderflow) {
  using T = TypeParam;
  const T least = std::numeric_limits<T>::denorm_min();
  const auto data =
      DenseDataset<T>::with_targets(std::vector<T>(4, -least), std::vector<T>(4, T(-0.25)), 1);
  for (const auto& [name, kernels] : all_kernels<T>()) {
    SCOPED_TRACE(name);
    DrawnNetwork<T> network({1, 1}, Activation::relu, kernels);
    std::fill(network.parameters.values().begin(), network.parameters.values().end(), T{0});
    expect_the_same(network, data, 2, 2);
    const Result<T> all = together(network, data, {0, 1, 2, 3}, 2);
    EXPECT_EQ(all.gradient.front(), 0);
    EXPECT_FALSE(std::signbit(all.gradient.front()));
  }
}

}  // namespace
}  // namespace rubato
