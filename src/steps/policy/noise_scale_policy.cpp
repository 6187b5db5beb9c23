#include "noise_scale_policy.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/numbers/functions.hpp"

namespace rubato {

namespace {

constexpr std::string_view kLogNoise = "log_noise";
constexpr std::string_view kMeasured = "measured";
constexpr std::string_view kLast = "last";
constexpr std::string_view kStayed = "stayed";

}  // namespace

std::string NoiseScalePolicy::name() const {
  return fmt::format(
      "noise-scale of {} to {} minibatches of {} by factor {} smoothing {} change {} every {} wait "
      "{}",
      bounds_.least(), bounds_.most(), bounds_.minibatch_size(), options_.factor,
      options_.smoothing, options_.change, options_.every, options_.wait);
}

double NoiseScalePolicy::target() const {
  const auto minibatch = static_cast<double>(bounds_.minibatch_size());
  return std::clamp(options_.factor * exact::exp(log_noise_.value()),
                    static_cast<double>(bounds_.least()) * minibatch,
                    static_cast<double>(bounds_.most()) * minibatch);
}

std::int64_t NoiseScalePolicy::minibatches(const TraceStep& offered) const {
  if (measured_ == 0 || measured_ < options_.wait) {
    return bounds_.nearest(static_cast<double>(offered.batch_size));
  }
  const auto batch = static_cast<double>(last_ * bounds_.minibatch_size());
  const double wanted = target();
  const double room = 1 + options_.change;
  const bool stays = wanted <= batch * room && wanted * room >= batch;
  return stays || stayed_ < options_.every ? last_ : bounds_.nearest(wanted);
}

BatchDecision NoiseScalePolicy::decide(const TraceStep& offered,
                                       const SourceProgress& progress) const {
  BatchDecision decision{.step = bounds_.step_of(minibatches(offered), offered.cores)};
  if (progress.noise_scale) {
    decision.inputs.push_back({.name = "noise_scale", .value = *progress.noise_scale});
  }
  if (measured_ > 0) decision.inputs.push_back({.name = "target", .value = target()});
  return decision;
}

void NoiseScalePolicy::observe(const ObservedStep& step) {
  // The end of training may have shortened the step.
  const std::int64_t taken =
      std::max(minibatches_of(step.step.batch_size, bounds_.minibatch_size()), bounds_.least());
  stayed_ = taken == last_ ? stayed_ + 1 : 1;
  last_ = taken;
  if (!step.after.noise_scale) return;
  // A noise scale below a sample is rounding.
  log_noise_.add(exact::log(std::max(1.0, *step.after.noise_scale)), options_.smoothing,
                 Averaging::debiased);
  ++measured_;
}

void NoiseScalePolicy::visit_state(StateVisitor& state) {
  struct LogNoise {
    MovingAverage& average;
    void visit_state(NumberVisitor& numbers) { average.visit_debiased(numbers); }
  } log_noise{log_noise_};
  state.numbers(kLogNoise, log_noise, "the policy of the noise scale");
  state.count(kMeasured, measured_);
  state.count(kLast, last_);
  state.count(kStayed, stayed_);
  state.require(std::ranges::all_of(numbers_of(log_noise),
                                    [](double number) { return std::isfinite(number); }) &&
                    (last_ == 0 || (last_ >= bounds_.least() && last_ <= bounds_.most())),
                "the policy of the noise scale");
}

}  // namespace rubato
