#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace rubato::test {

/// Normally distributed.
template <class T>
std::vector<T> random_values(std::size_t size, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values(size);
  for (T& value : values) value = static_cast<T>(normal(generator));
  return values;
}

}  // namespace rubato::test
