#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rubato {

/// The level of all tests and intervals: 95 % intervals, differences that stand at 5 %.
inline constexpr double kLevel = 0.05;

/// What some numbers say of the mean of the distribution that they are of.
struct Estimate {
  std::int64_t count = 0;
  double mean = 0;
  /// Standard deviation with count - 1; 0 of one number.
  double deviation = 0;
  /// Half the width of the 95 % interval by Student's distribution; empty of one number.
  std::optional<double> half_width{};
};
/// Of at least one number; all have to be finite.
[[nodiscard]] Estimate estimate(std::span<const double> numbers);

/// What pairs say of a difference.
struct PairedDifference {
  /// Of one minus other.
  Estimate difference;
  /// Of the two-sided t-test that there is none; empty of one pair. Where all differences are the
  /// same number, 0, or 1 where that is 0.
  std::optional<double> p{};
};
/// `one` and `other` are as long; the numbers at the same place are a pair.
[[nodiscard]] PairedDifference paired_difference(std::span<const double> one,
                                                 std::span<const double> other);

/// The p-values of a family of tests, adjusted by Holm's step-down procedure (Holm 1979): a test
/// stands at level a where its adjusted value is at most a, and the probability that any true
/// hypothesis falls is at most a. In the order of `p`.
[[nodiscard]] std::vector<double> holm(std::span<const double> p);

/// The middle of the numbers, of which `missing` more are larger than all: the mean of the two in
/// the middle of an even count. Empty where the middle is among the missing, or there is nothing.
[[nodiscard]] std::optional<double> median(std::vector<double> numbers, std::int64_t missing = 0);

}  // namespace rubato
