#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rubato {

/// The level of all tests and intervals: 95 % intervals, and differences significant at 5 %.
inline constexpr double kLevel = 0.05;

/// An estimate of the mean of a distribution from a sample.
struct Estimate {
  std::int64_t count = 0;
  double mean = 0;
  /// Sample standard deviation (divisor count - 1); 0 for one number, and for numbers that are
  /// equal but for rounding.
  double deviation = 0;
  /// Half the width of the 95 % interval by Student's distribution; empty for one number.
  std::optional<double> half_width{};
};
/// Estimates the mean of at least one number; all numbers must be finite.
[[nodiscard]] Estimate estimate(std::span<const double> numbers);

/// The difference of two paired samples.
struct PairedDifference {
  /// Estimate of `one` minus `other`.
  Estimate difference;
  /// p-value of the two-sided paired t-test of no difference. Empty for one pair, and if all
  /// differences are the same number but for rounding, for which the test is not defined, nor is
  /// the interval; 1 if that number is 0, as the pairs are equal.
  std::optional<double> p{};
};
/// Compares two samples of the same length; the numbers at the same index are a pair.
[[nodiscard]] PairedDifference paired_difference(std::span<const double> one,
                                                 std::span<const double> other);

/// The one-sided t-test of non-inferiority: that a mean deficit, over pairs, is below a margin.
struct MarginTest {
  /// Upper end of the one-sided 95 % interval of the mean deficit.
  double bound = 0;
  /// p-value of the test against a mean deficit of at least the margin.
  double p = 1;
  /// The number of pairs for which pairs_needed() is computed from the deviation of these.
  std::int64_t pairs = 0;
};
/// Tests deficits against a margin above 0. Empty for a single deficit, and for deficits that are
/// all the same, for which the test is not defined.
[[nodiscard]] std::optional<MarginTest> margin_test(const Estimate& deficit, double margin);

/// (2.49 deviation / margin)^2, rounded up, from 2 to kMostPairs: the number of pairs with which
/// the test shows, four times in five, that one of two equals is behind by less than the
/// margin. 2.49 is the sum of the normal quantiles of 95 % and 80 %; Student's quantiles ask for
/// two more pairs.
[[nodiscard]] std::int64_t pairs_needed(double deviation, double margin);
inline constexpr std::int64_t kMostPairs = 1'000'000'000;

/// The mean of the numbers without the floor(n / 4) least and the floor(n / 4) greatest of them;
/// they may contain -infinity. There must be at least one.
[[nodiscard]] double interquartile_mean(std::vector<double> numbers);

/// An interval with limits that may be -infinity.
struct Interval {
  double low = 0;
  double high = 0;
};
/// The interval of the middle 95 % of the numbers, without the 2.5 % (rounded down) at each end.
[[nodiscard]] Interval middle_interval(std::vector<double> numbers);

/// The ranks from 1 for the greatest number; equal numbers share the mean of their ranks.
[[nodiscard]] std::vector<double> ranks_of(std::span<const double> numbers);

/// The p-values of a family of tests, adjusted by Holm's step-down procedure (Holm 1979), in the
/// order of `p`. A test is significant at level a if its adjusted value is at most a; the
/// probability that any true hypothesis is rejected is then at most a.
[[nodiscard]] std::vector<double> holm(std::span<const double> p);

/// Sets `adjusted` of the tests that have a p-value `p` by holm().
template <class Test>
void correct(const std::vector<Test*>& family) {
  std::vector<double> p;
  for (const Test* const test : family) {
    if (test->p) p.push_back(*test->p);
  }
  const std::vector<double> adjusted = holm(p);
  auto next = adjusted.begin();
  for (Test* const test : family) {
    if (test->p) test->adjusted = *next++;
  }
}

/// The median of the numbers and of `missing` more that are larger than all of them; for an even
/// count, the mean of the two in the middle. Empty if the middle is among the missing, or if there
/// are no numbers.
[[nodiscard]] std::optional<double> median(std::vector<double> numbers, std::int64_t missing = 0);

// Student's distribution, and the power of paired t-tests. Degrees of freedom are at least 1; a
// test of n differences has n - 1.

/// P(|T| >= |t|), the p-value of a two-sided test; 0 to 1.
[[nodiscard]] double student_two_sided(double t, std::int64_t degrees);

/// P(T >= t), the p-value of a one-sided test.
[[nodiscard]] double student_upper(double t, std::int64_t degrees);

/// The t that |T| exceeds with probability `level` (above 0, at most 1): 2.776 for 0.05 and 4
/// degrees.
[[nodiscard]] double student_critical(double level, std::int64_t degrees);

/// The probability that a two-sided paired t-test at `level` rejects, if the differences of the
/// `pairs` (at least 2) are normally distributed and their mean is `effect` standard deviations. It
/// is the tail probability of the noncentral distribution with noncentrality effect * sqrt(pairs).
[[nodiscard]] double t_test_power(double effect, std::int64_t pairs, double level);

/// The effect, in standard deviations of the differences, for which this test has the given `power`
/// (above `level`, below 1).
[[nodiscard]] double detectable_effect(std::int64_t pairs, double level, double power);

}  // namespace rubato
