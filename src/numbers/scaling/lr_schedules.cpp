#include "lr_schedules.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/portable_math.hpp"

namespace rubato {

namespace {

double positive(double value, const char* what) {
  if (value > 0 && std::isfinite(value)) return value;
  throw Error(fmt::format("{} {}: accepted are values above 0", what, value));
}

double share(double value, const char* what) {
  if (value >= 0 && value <= 1) return value;
  throw Error(fmt::format("{} {}: accepted are values from 0 to 1", what, value));
}

}  // namespace

ConstantSchedule::ConstantSchedule(double value) : value_(value) {
  if (!(value >= 0) || !std::isfinite(value)) {
    throw Error(fmt::format("constant schedule {}: accepted are values of at least 0", value));
  }
}

double ConstantSchedule::factor(double) const {
  return value_;
}

StepSchedule::StepSchedule(double every, double gamma)
    : every_(positive(every, "length of a step")), gamma_(positive(gamma, "gamma")) {}

double StepSchedule::factor(double position) const {
  return exact::pow(gamma_, std::floor(position / every_));
}

MultiStepSchedule::MultiStepSchedule(std::vector<double> milestones, double gamma)
    : milestones_(std::move(milestones)), gamma_(positive(gamma, "gamma")) {
  if (!std::is_sorted(milestones_.begin(), milestones_.end())) {
    throw Error("the milestones of a multi-step schedule must ascend");
  }
}

double MultiStepSchedule::factor(double position) const {
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), position);
  return exact::pow(gamma_, static_cast<double>(passed - milestones_.begin()));
}

PolynomialSchedule::PolynomialSchedule(double total, double power, double floor)
    : total_(positive(total, "total")),
      power_(positive(power, "power")),
      floor_(share(floor, "floor")) {}

double PolynomialSchedule::factor(double position) const {
  const double left = std::max(0.0, 1 - position / total_);
  return floor_ + (1 - floor_) * exact::pow(left, power_);
}

CosineSchedule::CosineSchedule(double total, double floor)
    : total_(positive(total, "total")), floor_(share(floor, "floor")) {}

double CosineSchedule::factor(double position) const {
  const double done = std::min(1.0, position / total_);
  return floor_ + (1 - floor_) * 0.5 * (1 + exact::cos_of_turns(0.5 * done));
}

ExponentialSchedule::ExponentialSchedule(double gamma) : gamma_(positive(gamma, "gamma")) {}

double ExponentialSchedule::factor(double position) const {
  return exact::pow(gamma_, position);
}

WarmupSchedule::WarmupSchedule(double length, double start)
    : length_(positive(length, "length of the warm-up")), start_(share(start, "start")) {}

double WarmupSchedule::factor(double position) const {
  if (position >= length_) return 1;
  return start_ + (1 - start_) * (position / length_);
}

WarmupCosineSchedule::WarmupCosineSchedule(double warmup, double total)
    : warmup_(warmup), cosine_(total > warmup ? total - warmup : 0), begin_(warmup) {}

double WarmupCosineSchedule::factor(double position) const {
  return position < begin_ ? warmup_.factor(position) : cosine_.factor(position - begin_);
}

DelayedSchedule::DelayedSchedule(std::unique_ptr<LrSchedule> schedule, double begin)
    : schedule_(std::move(schedule)), begin_(begin) {}

double DelayedSchedule::factor(double position) const {
  return schedule_->factor(std::max(0.0, position - begin_));
}

double ChainedSchedule::factor(double position) const {
  double product = 1;
  for (const auto& schedule : schedules_) product *= schedule->factor(position);
  return product;
}

void ChainedSchedule::observe(double metric) {
  for (const auto& schedule : schedules_) schedule->observe(metric);
}

bool ChainedSchedule::watches() const {
  return std::any_of(schedules_.begin(), schedules_.end(),
                     [](const auto& schedule) { return schedule->watches(); });
}

void ChainedSchedule::visit_state(NumberVisitor& numbers) {
  for (const auto& schedule : schedules_) numbers.part(*schedule);
}

ReduceOnPlateau::ReduceOnPlateau(const ReduceOnPlateauOptions& options) : options_(options) {
  if (!(options.factor > 0 && options.factor < 1)) {
    throw Error(
        fmt::format("factor {} of a plateau: accepted are values between 0 and 1", options.factor));
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
