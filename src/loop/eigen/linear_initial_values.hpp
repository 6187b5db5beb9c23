#pragma once

#include <cstdint>
#include <random>
#include <span>

#include "base/machine/instruction_set.hpp"

namespace rubato {

/// Draws the initial values of torch::nn::Linear, bit for bit, layer by layer as modules are made
/// after torch::manual_seed(seed).
///
/// libtorch draws x in [0, 1), with 24 bits for float and 53 for double, by MT19937, which takes
/// the lower 32 bits of the seed, and computes x (to - from) + from: with one rounding if it uses
/// AVX2 and FMA, otherwise with two. So the values depend on the instruction set.
class LinearInitialValues {
 public:
  LinearInitialValues(std::uint64_t seed, InstructionSet set)
      : generator_(static_cast<std::uint32_t>(seed)), fused_(has_fma(set)) {}

  /// Draws the weights [outputs, inputs], and then the biases [outputs], of a layer. T is float or
  /// double.
  template <class T>
  void draw(std::span<T> weights, std::span<T> biases, std::int64_t inputs);

 private:
  template <class T>
  void draw_uniform(std::span<T> values, double bound);
  template <class T>
  T draw_unit();

  std::mt19937 generator_;
  bool fused_;
};

extern template void LinearInitialValues::draw(std::span<float>, std::span<float>, std::int64_t);
extern template void LinearInitialValues::draw(std::span<double>, std::span<double>, std::int64_t);

}  // namespace rubato
