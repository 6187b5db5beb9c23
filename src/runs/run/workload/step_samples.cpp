#include "step_samples.hpp"

#include <algorithm>
#include <cmath>

namespace rubato {

namespace {

// The value that `share` of the values do not exceed, interpolated linearly: the median of an even
// number is the mean of the two in the middle.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(const std::vector<double>& values) {
  return quantile(values, 0.5);
}

}  // namespace

void StepSamples::add(double seconds, const StepTiming& timing) {
  const double busy = timing.data + timing.compute + timing.reduce;
  steps_.push_back(seconds);
  substeps_.push_back(busy / minibatches_);
  updates_.push_back(std::max(0.0, seconds - busy / threads_));
}

double StepSamples::substep_seconds() const {
  return median(substeps_);
}

double StepSamples::update_seconds() const {
  return median(updates_);
}

double StepSamples::spread() const {
  return (quantile(steps_, 0.75) - quantile(steps_, 0.25)) / median(steps_);
}

bool StepSamples::settled() const {
  constexpr std::int64_t kFewest = 20;
  constexpr double kError = 0.005;
  // The standard error of a median is 0.93 times that for a normal distribution.
  return count() >= kFewest && spread() <= kError * std::sqrt(static_cast<double>(count()));
}

}  // namespace rubato
