#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <rubato/loop/optimizer.hpp>

namespace rubato::test {

[[nodiscard]] inline double square_sum(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

/// |found - expected| <= absolute + relative |expected|, for every element.
[[nodiscard]] inline bool all_close(std::span<const double> found, std::span<const double> expected,
                                    double relative, double absolute) {
  if (found.size() != expected.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    // Not the other way round, as NaN is close to nothing.
    if (!(std::abs(found[i] - expected[i]) <= absolute + relative * std::abs(expected[i]))) {
      return false;
    }
  }
  return true;
}

/// Parameter tensors in one flat buffer, as optimizers see them, and the sum of a step's gradients.
/// Both are 0 in the padding behind each tensor.
struct FlatProblem {
  /// With the same sizes, initial values and gradients are the same.
  explicit FlatProblem(const std::vector<std::size_t>& of_tensors) : sizes(of_tensors) {
    constexpr std::size_t kAlignment = 8;
    std::size_t end = 0;
    for (const std::size_t size : sizes) {
      begins.push_back(end);
      end += (size + kAlignment - 1) / kAlignment * kAlignment;
      ends.push_back(end);
    }
    parameters.resize(end);
    sum.resize(end);
    for (std::size_t i = 0; i < sizes.size(); ++i) fill(values(i), 1);
  }

  [[nodiscard]] ParameterLayout layout(std::vector<std::size_t> groups) const {
    return {.layer_ends = ends, .layer_groups = std::move(groups)};
  }
  [[nodiscard]] std::span<double> values(std::size_t i) {
    return std::span(parameters).subspan(begins[i], sizes[i]);
  }
  [[nodiscard]] std::span<double> sum_of(std::size_t i) {
    return std::span(sum).subspan(begins[i], sizes[i]);
  }
  [[nodiscard]] std::vector<double> copy_of(std::size_t i) {
    return {values(i).begin(), values(i).end()};
  }

  /// Draws the gradients of a step.
  void draw(double deviation = 1) {
    for (std::size_t i = 0; i < sizes.size(); ++i) fill(sum_of(i), deviation);
  }

  std::vector<std::size_t> sizes;
  std::vector<std::size_t> begins;
  std::vector<std::size_t> ends;
  std::vector<double> parameters;
  std::vector<double> sum;

 private:
  void fill(std::span<double> into, double deviation) {
    for (double& value : into) value = deviation * normal_(generator_);
  }

  std::mt19937 generator_{7};
  std::normal_distribution<double> normal_;
};

}  // namespace rubato::test
