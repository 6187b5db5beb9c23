#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/index.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/rule.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

/// A place in a training, as people count: epoch and step from 1. Files count from 0.
[[nodiscard]] inline std::string place_of(EpochIndex epoch, StepIndex step) {
  return fmt::format("epoch {}, step {} of the run", epoch.value() + 1, step.value() + 1);
}

/// Returns "NaN", whatever its sign, "infinite", or the number.
[[nodiscard]] inline std::string in_words(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return "infinite";
  return fmt::format("{:.6g}", number);
}

/// Throws Error unless it can name something of the user's own: states and records store such
/// names, in lines.
inline void require_name(const std::string& name, std::string_view of) {
  if (!name.empty() && name.find_first_of("/\n") == std::string::npos) return;
  throw_error("a {} is called '{}'; accepted: a name of one line without /", of, name);
}

/// Throws Error for metrics that violate the rules of OwnMetric.
void require_metrics(std::span<const OwnMetric> metrics);

/// Throws Error unless the metric is built in or one of these.
void require_known(const WatchedMetric& metric, const TrainOptions& options);

/// Returns the objective. Throws Error for null, and for one that the loop cannot drive: its
/// parameters are neither floats nor doubles, its arrays do not have the place or type that they
/// claim, or two of them have the same name.
[[nodiscard]] std::unique_ptr<Objective> checked_objective(std::unique_ptr<Objective> objective);

/// The origin of rates to be checked, for messages.
struct RatesContext {
  std::string_view rule;
  /// The step, as people count.
  std::string place;
  std::size_t groups = 1;
  std::size_t layers = 1;
  OptimizerNumbers optimizer{};
};

/// Throws Error, naming the rule, the place and the number, if the rates cannot be applied: one is
/// negative, not finite or out of its range, the number of factors is not that of groups or
/// tensors, or the optimizer does not have what is answered.
void require_applicable(const Rates& rates, const RatesContext& context);

/// Throws Error if a rate that an observer sets (Training::set_learning_rate()) is negative or not
/// finite.
void require_applicable_rate(double rate);

/// Throws Error if the factor of the schedule at `place` is negative or not finite, or if its
/// momentum is not from 0 to below 1.
void require_applicable(double schedule_factor, const std::optional<double>& momentum,
                        std::string_view schedule, std::string_view place);

/// Returns the options with their defaults filled in. Throws Error for one out of range; options of
/// a rule, a schedule, an optimizer or the plan are checked by these.
[[nodiscard]] TrainOptions checked_options(TrainOptions options);

}  // namespace rubato
