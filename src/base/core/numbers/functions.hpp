#pragma once

namespace rubato {

/// Functions of real numbers whose bits a result depends on: the same on every CPU and with every C
/// library, as they are made of +, -, *, / and the square root of IEEE 754 and of nothing that a
/// compiler might fuse. The C library's may differ in the last bit, between CPUs with and without
/// FMA already (docs/adr/0062).
///
/// Rounded correctly: computed to some 95 bits, and then rounded once. Arguments that are not
/// defined, NaN, infinities and what is too large or too small are answered as std::exp() and its
/// like do, without errno.
namespace exact {

[[nodiscard]] double exp(double x);
/// The natural one.
[[nodiscard]] double log(double x);
/// log(1 + x).
[[nodiscard]] double log1p(double x);
/// A negative x has a power where y is a whole number.
[[nodiscard]] double pow(double x, double y);
/// cos(2 pi turns), where |turns| < 2^50.
[[nodiscard]] double cos_of_turns(double turns);

}  // namespace exact

/// The same within two units in the last place, about as fast as the C library.
namespace quick {

/// Of a normal number above 0; NaN of NaN.
[[nodiscard]] double log(double x);

struct Direction {
  double cosine;
  double sine;
};
/// Those of 2 pi turns, where |turns| < 2^50.
[[nodiscard]] Direction direction(double turns);

}  // namespace quick

}  // namespace rubato
