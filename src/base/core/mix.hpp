#pragma once

#include <cstdint>
#include <initializer_list>

namespace rubato {

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection in which every bit of the
/// input changes every bit of the output with a probability of about one half.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E37'79B9'7F4A'7C15;
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EB;
  return x ^ (x >> 31);
}

/// A seed for an independent stream for each combination of `parts`.
[[nodiscard]] constexpr std::uint64_t seed_of(std::uint64_t seed,
                                              std::initializer_list<std::int64_t> parts) {
  std::uint64_t result = mixed(seed);
  for (const std::int64_t part : parts) result = mixed(result ^ static_cast<std::uint64_t>(part));
  return result;
}

}  // namespace rubato
