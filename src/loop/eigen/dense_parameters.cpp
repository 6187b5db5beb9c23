#include "dense_parameters.hpp"

#include <cmath>
#include <concepts>
#include <limits>

namespace rubato {

namespace {

// There are no kernels for AVX alone.
InstructionSet best_instruction_set() {
  const InstructionSet best = allowed_instruction_set();
  return best == InstructionSet::avx ? InstructionSet::sse : best;
}

}  // namespace

InstructionSet dense_instruction_set() {
  static const InstructionSet set = best_instruction_set();
  return set;
}

template <class T>
T LinearInitialValues::draw_unit() {
  std::uint64_t bits = generator_();
  if constexpr (std::same_as<T, double>) bits = bits << 32U | generator_();
  constexpr std::uint64_t kValues = std::uint64_t{1} << std::numeric_limits<T>::digits;
  return static_cast<T>(bits % kValues) * (T{1} / static_cast<T>(kValues));
}

template <class T>
void LinearInitialValues::draw_uniform(std::span<T> values, double bound) {
  const T from = static_cast<T>(-bound);
  const T range = static_cast<T>(bound) - from;
  for (T& value : values) {
    const T unit = draw_unit<T>();
    value = fused_ ? std::fma(unit, range, from) : unit * range + from;
  }
}

// The bounds are computed as in libtorch, step by step: Kaiming's for a leaky slope of sqrt(5)
// equals 1 / sqrt(inputs) except for rounding.
template <class T>
void LinearInitialValues::draw(std::span<T> weights, std::span<T> biases, std::int64_t inputs) {
  const double root = std::sqrt(static_cast<double>(inputs));
  const double gain = std::sqrt(2.0 / (1 + std::pow(std::sqrt(5.0), 2)));
  draw_uniform(weights, std::sqrt(3.0) * (gain / root));
  draw_uniform(biases, 1 / root);
}

template void LinearInitialValues::draw(std::span<float>, std::span<float>, std::int64_t);
template void LinearInitialValues::draw(std::span<double>, std::span<double>, std::int64_t);

}  // namespace rubato
