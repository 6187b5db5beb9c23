#pragma once

#include <cstdint>

namespace rubato {

// Student's distribution, and what a paired t-test can see. Its `degrees` of freedom are those of
// n - 1 differences, and at least 1.

/// P(|T| >= |t|), the p-value of a two-sided test; 0 to 1.
[[nodiscard]] double student_two_sided(double t, std::int64_t degrees);

/// The t that |T| exceeds with probability `level` (above 0, up to 1): 2.776 of 0.05 and 4 degrees.
[[nodiscard]] double student_critical(double level, std::int64_t degrees);

/// The probability that a two-sided paired t-test at `level` rejects, where the differences of
/// `pairs` (at least 2) pairs are normal and their mean is `effect` of their standard deviations:
/// the tails of the noncentral distribution with noncentrality effect * sqrt(pairs).
[[nodiscard]] double t_test_power(double effect, std::int64_t pairs, double level);

/// The effect, in standard deviations of the differences, at which that test has `power` (above
/// `level`, below 1).
[[nodiscard]] double detectable_effect(std::int64_t pairs, double level, double power);

}  // namespace rubato
