#include "lr_schedules.hpp"

#include <algorithm>
#include <cmath>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

ReduceOnPlateau::ReduceOnPlateau(const ReduceOnPlateauOptions& options) : options_(options) {
  if (!(options.factor > 0 && options.factor < 1)) {
    throw_error("factor {} of a plateau: accepted are values between 0 and 1", options.factor);
  }
  if (options.patience < 0 || options.cooldown < 0 || !(options.threshold >= 0) ||
      !(options.floor >= 0)) {
    throw Error(
        "patience, cooldown, threshold and floor of a plateau: accepted are values of at "
        "least 0");
  }
}

bool ReduceOnPlateau::improves(double metric) const {
  if (!best_) return !std::isnan(metric);
  const double sign = options_.mode == MetricMode::min ? -1 : 1;
  const double by = options_.threshold_mode == ThresholdMode::relative
                        ? std::abs(*best_) * options_.threshold
                        : options_.threshold;
  return sign * (metric - *best_) > by;
}

void ReduceOnPlateau::observe(double metric) {
  if (improves(metric)) {
    best_ = metric;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_ = 0;
  }
  if (bad_ > options_.patience) {
    factor_ = std::max(factor_ * options_.factor, options_.floor);
    cooldown_left_ = options_.cooldown;
    bad_ = 0;
  }
}

void ReduceOnPlateau::visit_state(NumberVisitor& numbers) {
  numbers.number(factor_);
  numbers.optional(best_);
  numbers.count(bad_);
  numbers.count(cooldown_left_);
}

}  // namespace rubato
