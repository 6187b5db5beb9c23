#include "lr_schedules.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <rubato/base/error.hpp>

#include "base/core/portable_math.hpp"
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

OneCycle::OneCycle(const OneCycleOptions& options)
    : annealing_(options.annealing), moves_momentum_(options.momentum.has_value()) {
  const auto [base, max] = options.momentum.value_or(OneCycleOptions::Momentum());
  turns_ = {{.position = 0, .factor = options.start, .momentum = max},
            {.position = options.peak, .factor = 1, .momentum = base}};
  if (options.three_phase) {
    turns_.push_back({.position = 2 * options.peak, .factor = options.start, .momentum = max});
  }
  turns_.push_back({.position = options.total, .factor = options.floor, .momentum = max});
}

double OneCycle::factor(double position) const {
  return between_turns(position, &Turn::factor);
}

std::optional<double> OneCycle::momentum(double position) const {
  if (!moves_momentum_) return std::nullopt;
  return between_turns(position, &Turn::momentum);
}

double OneCycle::between_turns(double position, double Turn::*value) const {
  const auto next = std::ranges::upper_bound(turns_, position, {}, &Turn::position);
  if (next == turns_.end()) return turns_.back().*value;
  const Turn& last = *std::prev(next);
  const double done = (position - last.position) / (next->position - last.position);
  const double way =
      annealing_ == Annealing::linear ? done : 0.5 * (1 - exact::cos_of_turns(0.5 * done));
  return last.*value + way * ((*next).*value - last.*value);
}

}  // namespace rubato
