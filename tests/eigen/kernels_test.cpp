// The kernels for each instruction set that this CPU has, beside each other.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

#include "eigen/all_kernels.hpp"
#include "loop/eigen/dense_parameters.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using dense::Batch;
using dense::Kernels;
using dense::Layer;
using test::all_kernels;
using test::random_values;

// 50 samples of 300 features through hidden layers of 140 and 9 to 10 classes, with `shift` values
// before the inputs, which moves them off every alignment.
template <class T>
std::vector<T> gradient_by(const Kernels<T>& kernels, bool tanh, std::size_t shift = 0) {
  constexpr std::ptrdiff_t kSamples = 50;
  const std::vector<Layer> layers{
      {.inputs = 300, .outputs = 140, .weights = 0, .biases = 42'000},
      {.inputs = 140, .outputs = 9, .weights = 42'144, .biases = 43'408},
      {.inputs = 9, .outputs = 10, .weights = 43'424, .biases = 43'520}};
  constexpr std::size_t kParameters = 43'536;
  const AlignedValues<T> parameters(kParameters);
  const std::vector<T> values = random_values<T>(kParameters, 2);
  std::transform(values.begin(), values.end(), parameters.data(),
                 [](T value) { return value / 10; });
  AlignedValues<T> inputs(kSamples * 300 + shift);
  const std::vector<T> rows = random_values<T>(kSamples * 300, 3);
  std::copy(rows.begin(), rows.end(), inputs.data() + shift);
  std::vector<std::int64_t> classes(kSamples);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int64_t>(i % 10);
  const AlignedValues<T> first(kSamples * 144);
  const AlignedValues<T> second(kSamples * 16);
  const AlignedValues<T> third(kSamples * 16);
  const AlignedValues<T> scratch(kSamples * 144);
  const AlignedValues<T> packed(dense::kPackedValues);
  const std::vector<T*> outputs{first.data(), second.data(), third.data()};
  const Batch<T> batch{.layers = layers.data(),
                       .layer_count = 3,
                       .tanh = tanh,
                       .parameters = parameters.data(),
                       .samples = kSamples,
                       .inputs = inputs.data() + shift,
                       .outputs = outputs.data(),
                       .scratch = scratch.data(),
                       .packed = packed.data()};
  AlignedValues<T> gradient(kParameters + 1);
  kernels.forward(batch);
  gradient.data()[kParameters] = static_cast<T>(kernels.cross_entropy(batch, classes.data()));
  kernels.backward(batch, gradient.data());
  return {gradient.data(), gradient.data() + gradient.size()};
}

template <class T>
double relative_distance(const std::vector<T>& a, const std::vector<T>& b) {
  double squares = 0;
  double all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    squares += difference * difference;
    all += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  }
  return std::sqrt(squares / all);
}

template <class T>
void expect_equal_to_rounding(double tolerance) {
  for (const bool tanh : {false, true}) {
    const std::vector<T> expected = gradient_by(dense::base_kernels<T>(), tanh);
    ASSERT_TRUE(std::isfinite(expected.back()));
    for (const auto& [name, kernels] : all_kernels<T>()) {
      EXPECT_LT(relative_distance(gradient_by(kernels, tanh), expected), tolerance) << name;
    }
  }
}

TEST(DenseKernels, AreEqualToRounding) {
  expect_equal_to_rounding<float>(1e-6);
  expect_equal_to_rounding<double>(1e-14);
}

TEST(DenseKernels, DoNotDependOnWhereTheInputsLie) {
  for (const auto& [name, kernels] : all_kernels<float>()) {
    const std::vector<float> expected = gradient_by(kernels, true);
    for (std::size_t shift = 1; shift < 16; ++shift) {
      EXPECT_TRUE(gradient_by(kernels, true, shift) == expected) << name << " " << shift;
    }
  }
}

TEST(DenseKernels, AreChosenByTheCpu) {
  EXPECT_LE(dense_instruction_set(), cpu_instruction_set());
  EXPECT_NE(dense_instruction_set(), InstructionSet::avx);
}

}  // namespace
}  // namespace rubato
