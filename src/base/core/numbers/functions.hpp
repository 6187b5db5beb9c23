#pragma once

namespace rubato {

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
