#include <cmath>
#include <cstdint>

#include "statistics.hpp"

// The functions for long double are disabled. Nothing here uses them, but they compute at the start
// of the program, which ends it under valgrind, where that type is not supported.
#define BOOST_MATH_NO_LONG_DOUBLE_MATH_FUNCTIONS
// These headers take seconds to compile, so no other file includes them.
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/tools/toms748_solve.hpp>

#include "base/core/check.hpp"

namespace rubato {

namespace {

boost::math::students_t distribution_of(std::int64_t degrees) {
  RUBATO_CHECK(degrees >= 1, "Student's distribution has at least one degree of freedom");
  return boost::math::students_t(static_cast<double>(degrees));
}

}  // namespace

double student_two_sided(double t, std::int64_t degrees) {
  return 2 * cdf(complement(distribution_of(degrees), std::abs(t)));
}

double student_upper(double t, std::int64_t degrees) {
  return cdf(complement(distribution_of(degrees), t));
}

double student_critical(double level, std::int64_t degrees) {
  return quantile(complement(distribution_of(degrees), level / 2));
}

double t_test_power(double effect, std::int64_t pairs, double level) {
  RUBATO_CHECK(pairs >= 2, "a t-test needs at least two pairs");
  const auto count = static_cast<double>(pairs);
  const boost::math::non_central_t found(count - 1, effect * std::sqrt(count));
  const double critical = student_critical(level, pairs - 1);
  return cdf(complement(found, critical)) + cdf(found, -critical);
}

double detectable_effect(std::int64_t pairs, double level, double power) {
  RUBATO_CHECK(power > level && power < 1, "the power is above the level and below 1");
  std::uintmax_t steps = 1000;
  const auto [low, high] = boost::math::tools::bracket_and_solve_root(
      [&](double effect) { return t_test_power(effect, pairs, level) - power; }, 1.0, 2.0, true,
      boost::math::tools::eps_tolerance<double>(), steps);
  return low + (high - low) / 2;
}

}  // namespace rubato
