#include "experiment/student.hpp"

#include <cmath>

#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>

#include "core/check.hpp"

namespace rubato {

namespace {

// The x > 0 at which the ascending `f` is `value`, to the last digits that doubles have.
template <class Function>
double solve_ascending(const Function& f, double value) {
  double high = 1;
  while (f(high) < value && high < 1e300) high *= 2;
  double low = 0;
  for (double middle = high / 2; middle > low && middle < high; middle = low + (high - low) / 2) {
    (f(middle) < value ? low : high) = middle;
  }
  return high;
}

// P(Z > z) of the normal distribution.
double normal_tail(double z) {
  return std::erfc(z / std::sqrt(2.0)) / 2;
}

}  // namespace

double student_two_sided(double t, std::int64_t degrees) {
  RUBATO_CHECK(degrees >= 1, "a distribution of Student's has a degree of freedom");
  const auto d = static_cast<double>(degrees);
  if (t == 0) return 1;
  if (std::isinf(t)) return 0;
  return Eigen::numext::betainc(d / 2, 0.5, d / (d + t * t));
}

double student_critical(double level, std::int64_t degrees) {
  return solve_ascending([&](double t) { return -student_two_sided(t, degrees); }, -level);
}

double t_test_power(double effect, std::int64_t pairs, double level) {
  RUBATO_CHECK(pairs >= 2, "one difference has no deviation");
  constexpr int kIntervals = 4000;
  const auto d = static_cast<double>(pairs - 1);
  const double shift = effect * std::sqrt(static_cast<double>(pairs));
  const double critical = student_critical(level, pairs - 1);
  // Of the estimated deviation over the true one.
  const double log_norm = std::log(2.0) + d / 2 * std::log(d / 2) - std::lgamma(d / 2);
  const auto integrand = [&](double s) {
    const double log_density = log_norm + (d > 1 ? (d - 1) * std::log(s) : 0) - d * s * s / 2;
    return std::exp(log_density) *
           (normal_tail(critical * s - shift) + normal_tail(critical * s + shift));
  };
  // Simpson's rule; beyond the end the density is below e^-50.
  const double end = 1 + 10 / std::sqrt(d);
  const double width = end / kIntervals;
  double sum = integrand(d > 1 ? width * 1e-9 : 0) + integrand(end);
  for (int i = 1; i < kIntervals; ++i) sum += (i % 2 == 1 ? 4 : 2) * integrand(i * width);
  return sum * width / 3;
}

double detectable_effect(std::int64_t pairs, double level, double power) {
  RUBATO_CHECK(power > level && power < 1, "an effect of 0 is found with the level's probability");
  return solve_ascending([&](double effect) { return t_test_power(effect, pairs, level); }, power);
}

}  // namespace rubato
