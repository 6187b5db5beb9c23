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

/// Functions of real numbers for results that must have the same bits on every CPU and with every C
/// library: they use only +, -, *, / and the square root of IEEE 754, in expressions that no
/// compiler fuses. The C library's functions may differ in the last bit, even between CPUs with and
/// without FMA (docs/adr/0062).
///
/// Correctly rounded functions: computed to some 95 bits and then rounded once. Undefined
/// arguments, NaN, infinities, overflow and underflow are handled as by std::exp() and its like,
/// but without errno.
namespace exact {

[[nodiscard]] double exp(double x);
/// The natural logarithm.
[[nodiscard]] double log(double x);
/// log(1 + x), precise for small x.
[[nodiscard]] double log1p(double x);
/// A negative x has a power if y is a whole number.
[[nodiscard]] double pow(double x, double y);
/// cos(2 pi turns); requires |turns| < 2^50.
[[nodiscard]] double cos_of_turns(double turns);

}  // namespace exact

/// Functions with an error of at most two units in the last place, about as fast as the C library's
/// and with the same bits everywhere.
namespace quick {

/// The natural logarithm of a normal number above 0; NaN for NaN.
[[nodiscard]] double log(double x);

struct Direction {
  double cosine;
  double sine;
};
/// The cosine and sine of 2 pi turns; requires |turns| < 2^50.
[[nodiscard]] Direction direction(double turns);

}  // namespace quick

}  // namespace rubato
