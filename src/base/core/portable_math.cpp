// The functions of exact:: compute in double-double arithmetic (T. J. Dekker, "A floating-point
// technique for extending the available precision", Numerische Mathematik 18, 1971) and round the
// result once. exp() removes a multiple of log 2, halves the rest four times, sums its Taylor
// series, and squares the result as often; log() improves an estimate in plain doubles by one step
// of Newton's method, for which it needs exp(); pow() is the exponential of y log(x). The functions
// of quick:: share the reductions of arguments and use shorter series in plain doubles. The error
// terms are right only if the compiler evaluates every expression as it is written: it must neither
// reorder operations nor fuse them (-ffp-contract=off).

#include "portable_math.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rubato {

namespace {

constexpr double kPositiveInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// --- Double-double numbers: the sum of two doubles of which the second is at most half a unit in
// the last place of the first, 106 bits (Dekker 1971, Knuth 1969) ---

struct Pair {
  double high = 0;
  double low = 0;
};

// Requires |a| >= |b|, or a = 0.
Pair ordered_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Pair sum(double a, double b) {
  const double sum = a + b;
  const double of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

// The exact product without FMA: halves of 26 bits have exact products (Dekker 1971).
Pair product(double a, double b) {
  constexpr double kSplit = 0x1p27 + 1;
  const double a_scaled = kSplit * a;
  const double b_scaled = kSplit * b;
  const double a_high = a_scaled - (a_scaled - a);
  const double b_high = b_scaled - (b_scaled - b);
  const double a_low = a - a_high;
  const double b_low = b - b_high;
  const double rounded = a * b;
  return {rounded, ((a_high * b_high - rounded) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

Pair operator+(const Pair& a, const Pair& b) {
  const Pair high = sum(a.high, b.high);
  const Pair low = sum(a.low, b.low);
  const Pair first = ordered_sum(high.high, high.low + low.high);
  return ordered_sum(first.high, first.low + low.low);
}

Pair operator*(const Pair& a, const Pair& b) {
  const Pair high = product(a.high, b.high);
  return ordered_sum(high.high, high.low + (a.high * b.low + a.low * b.high));
}

Pair operator/(const Pair& a, double b) {
  const double quotient = a.high / b;
  const Pair back = product(quotient, b);
  return ordered_sum(quotient, (((a.high - back.high) - back.low) + a.low) / b);
}

constexpr Pair kLog2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Pair kTwoPi{0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};

// --- exp ---

// A number times a power of 2.
struct Scaled {
  Pair value;
  int exponent = 0;
};

double rounded(const Scaled& number) {
  // The result is rounded once, even if it is subnormal: the second part decides ties.
  const double whole = number.value.high + number.value.low;
  constexpr int kLeastNormal = -1021;
  if (std::ilogb(whole) + number.exponent >= kLeastNormal) {
    return std::ldexp(whole, number.exponent);
  }
  // Adding `large`, whose last place is the unit of the subnormal result, rounds to that unit.
  const int unit = -1074 - number.exponent;
  if (unit > 2) return 0;
  const double large = std::ldexp(1.5, unit + 52);
  const Pair parts = sum(large, number.value.high);
  const double kept = parts.high - large;
  const double left = parts.low + number.value.low;
  const double half = std::ldexp(0.5, unit);
  double result = kept;
  if (left > half) result += 2 * half;
  if (left < -half) result -= 2 * half;
  return std::ldexp(result, number.exponent);
}

// Computes exp(x) - 1 for |x| < 0.35.
Pair exp_less_one(Pair x) {
  // The argument is halved to |x| < 0.022; the result is squared as often afterwards.
  constexpr int kHalvings = 4;
  constexpr double kShare = 0x1p-4;
  x.high *= kShare;
  x.low *= kShare;
  // The series is x + x^2 / 2 + ...; one double is precise enough for the factor of x^8 / 8!.
  constexpr int kTerms = 13;
  constexpr int kPairs = 8;
  double tail = 1;
  for (int n = kTerms; n > kPairs; --n) tail = 1 + tail * x.high / n;
  Pair series{tail, 0};
  for (int n = kPairs; n > 1; --n) series = Pair{1, 0} + series * x / n;
  // Squares 1 + m: (1 + m)^2 - 1 = 2 m + m^2.
  Pair more = series * x;
  for (int i = 0; i < kHalvings; ++i) more = Pair{2 * more.high, 2 * more.low} + more * more;
  return more;
}

// Requires |x| < 1100.
Scaled exp_of(const Pair& x) {
  constexpr double kPerLog2 = 1.4426950408889634;
  const double times = std::floor(x.high * kPerLog2 + 0.5);
  const Pair by_high = product(times, kLog2.high);
  const Pair by_low = product(times, kLog2.low);
  const Pair rest = x + Pair{-by_high.high, -by_high.low} + Pair{-by_low.high, -by_low.low};
  return {Pair{1, 0} + exp_less_one(rest), static_cast<int>(times)};
}

// --- log ---

struct Split {
  double mantissa = 1;
  int exponent = 0;
};

// Splits a normal number above 0 so that the mantissa is between the square roots of 1/2 and of 2.
// It has no branch, because that would be mispredicted every other time.
Split split_of(double x) {
  constexpr auto kRootOfHalf = std::bit_cast<std::int64_t>(0.70710678118654752);
  constexpr int kMantissa = 52;
  const auto bits = std::bit_cast<std::int64_t>(x);
  const std::int64_t exponent = (bits - kRootOfHalf) >> kMantissa;
  return {std::bit_cast<double>(bits - exponent * (std::int64_t{1} << kMantissa)),
          static_cast<int>(exponent)};
}

// The series is 2 artanh(s) - 2 s, where s = (m - 1) / (m + 1) and |s| < 0.172.
double log_near_one(double mantissa) {
  constexpr std::array<double, 11> kSeries{2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,
                                           2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                           2.0 / 19, 2.0 / 21, 2.0 / 23};
  const double f = mantissa - 1;
  const double s = f / (2 + f);
  const double square = s * s;
  double series = 0;
  for (std::size_t i = kSeries.size(); i-- > 0;) series = kSeries[i] + series * square;
  // f - s f equals 2 s, and f is exact.
  return f - s * (f - series * square);
}

// The logarithm of x + low; requires x > 0.
Pair log_of(double x, double low = 0) {
  // Multiplying by 2^54 makes a subnormal number normal.
  constexpr int kScale = 54;
  const bool is_normal = x >= std::numeric_limits<double>::min();
  Split split = split_of(is_normal ? x : std::ldexp(x, kScale));
  if (!is_normal) split.exponent -= kScale;
  const Pair mantissa{split.mantissa, std::ldexp(low, -split.exponent)};
  const double near = log_near_one(split.mantissa);
  // One step of Newton: log(m) = y + log(1 + e), where e = m exp(-y) - 1 is below 2^-50.
  const Pair error = Pair{split.mantissa - 1, mantissa.low} + mantissa * exp_less_one({-near, 0});
  const Pair of_mantissa = Pair{near, 0} + error + Pair{-0.5 * error.high * error.high, 0};
  const double exponent = split.exponent;
  return product(exponent, kLog2.high) + product(exponent, kLog2.low) + of_mantissa;
}

bool is_whole(double y) {
  return std::floor(y) == y;
}

bool is_odd(double y) {
  return is_whole(y) && !is_whole(0.5 * y);
}

// --- cos and sin ---

struct Angle {
  // Turns from the nearest multiple of a quarter turn; `quarters` is that multiple modulo 4.
  double rest = 0;
  int quarters = 0;
};

Angle angle_of(double turns) {
  const double quarters = std::floor(4 * turns + 0.5);
  return {turns - 0.25 * quarters, static_cast<int>(quarters - 4 * std::floor(0.25 * quarters))};
}

// The series 1 - z / a + z^2 / (a b) - ..., where a, b, ... are the products of neighbours from
// `first` on: cos(x) from 1 and sin(x) / x from 2, with z = x^2 < 0.62.
Pair alternating(const Pair& z, int first) {
  constexpr int kTerms = 13;
  constexpr int kPairs = 8;
  const auto divisor = [first](int n) {
    const int factor = first + 2 * (n - 1);
    return static_cast<double>(factor * (factor + 1));
  };
  double tail = 1;
  for (int n = kTerms; n > kPairs; --n) tail = 1 - tail * z.high / divisor(n);
  Pair series{tail, 0};
  for (int n = kPairs; n > 0; --n) {
    const Pair part = series * z / divisor(n);
    series = Pair{1, 0} + Pair{-part.high, -part.low};
  }
  return series;
}

}  // namespace

double exact::exp(double x) {
  constexpr double kLargest = 709.79;
  constexpr double kSmallest = -745.2;
  if (std::isnan(x)) return x;
  if (x > kLargest) return kPositiveInfinity;
  if (x < kSmallest) return 0;
  return rounded(exp_of({x, 0}));
}

double exact::log(double x) {
  if (std::isnan(x) || x == kPositiveInfinity) return x;
  if (x == 0) return -kPositiveInfinity;
  if (x < 0) return kNan;
  const Pair log = log_of(x);
  return log.high + log.low;
}

double exact::log1p(double x) {
  if (std::isnan(x) || x == kPositiveInfinity || x == 0) return x;
  if (x == -1) return -kPositiveInfinity;
  if (x < -1) return kNan;
  // The square of a smaller number is below the last bit.
  constexpr double kTiny = 0x1p-60;
  if (std::fabs(x) < kTiny) return x;
  const Pair argument = std::fabs(x) < 1 ? ordered_sum(1, x) : sum(x, 1);
  const Pair log = log_of(argument.high, argument.low);
  return log.high + log.low;
}

double exact::pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y)) return kNan;
  const double sign = x < 0 || (x == 0 && std::signbit(x)) ? (is_odd(y) ? -1 : 1) : 1;
  const double base = std::fabs(x);
  if (base == 1) return std::isinf(y) || is_whole(y) ? sign : kNan;
  const bool grows = (base > 1) == (y > 0);
  if (base == 0 || std::isinf(base) || std::isinf(y))
    return grows ? sign * kPositiveInfinity : sign * 0;
  if (x < 0 && !is_whole(y)) return kNan;
  const Pair log = log_of(base);
  constexpr double kTooLarge = 1000;
  const double about = log.high * y;
  if (about > kTooLarge) return sign * kPositiveInfinity;
  if (about < -kTooLarge) return sign * 0;
  return sign * rounded(exp_of(log * Pair{y, 0}));
}

double exact::cos_of_turns(double turns) {
  const Angle angle = angle_of(turns);
  const Pair radians = kTwoPi * Pair{angle.rest, 0};
  const Pair square = radians * radians;
  const bool is_sine = angle.quarters % 2 == 1;
  const Pair value = is_sine ? alternating(square, 2) * radians : alternating(square, 1);
  const double whole = value.high + value.low;
  return angle.quarters == 1 || angle.quarters == 2 ? -whole : whole;
}

double quick::log(double x) {
  const Split split = split_of(x);
  // kHigh has few enough bits that its product with an exponent is exact.
  constexpr double kHigh = 0x1.62e42feep-1;
  constexpr double kLow = 0x1.a39ef35793c76p-33;
  const double exponent = split.exponent;
  // x - x makes the result NaN if x is not finite, because its bits have no mantissa.
  return exponent * kHigh + (log_near_one(split.mantissa) + exponent * kLow) + (x - x);
}

quick::Direction quick::direction(double turns) {
  const Angle angle = angle_of(turns);
  const double radians = kTwoPi.high * angle.rest;
  const double square = radians * radians;
  // The coefficients are 1 / (2 n (2 n + 1)) and 1 / ((2 n - 1) 2 n).
  constexpr std::array<double, 8> kSine{1.0 / 6,   1.0 / 20,  1.0 / 42,  1.0 / 72,
                                        1.0 / 110, 1.0 / 156, 1.0 / 210, 1.0 / 272};
  constexpr std::array<double, 8> kCosine{1.0 / 2,  1.0 / 12,  1.0 / 30,  1.0 / 56,
                                          1.0 / 90, 1.0 / 132, 1.0 / 182, 1.0 / 240};
  double sine = 0;
  double cosine = 0;
  for (std::size_t n = kSine.size(); n-- > 1;) {
    sine = (1 - sine) * square * kSine[n];
    cosine = (1 - cosine) * square * kCosine[n];
  }
  sine = radians - radians * ((1 - sine) * square * kSine[0]);
  const double half = 0.5 * square;
  cosine = 1 - (half - half * cosine);
  switch (angle.quarters) {
    case 0:
      return {cosine, sine};
    case 1:
      return {-sine, cosine};
    case 2:
      return {-cosine, -sine};
    default:
      return {sine, -cosine};
  }
}

}  // namespace rubato
