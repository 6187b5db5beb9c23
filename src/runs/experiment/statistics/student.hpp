#pragma once

#include <cstdint>

namespace rubato {

// Student's distribution, and the power of paired t-tests. Degrees of freedom are at least 1; a
// test of n differences has n - 1.

/// P(|T| >= |t|), the p-value of a two-sided test; 0 to 1.
[[nodiscard]] double student_two_sided(double t, std::int64_t degrees);

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
