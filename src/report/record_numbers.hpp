#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <rubato/plan/clock_time.hpp>
#include <rubato/train/records.hpp>

#include "core/hour.hpp"

// The numbers of records under the names that metrics.jsonl has for them: one list for everything
// that writes or shows them.

namespace rubato {

/// Calls visit(std::string_view name, const std::optional<double>& value) for what is measured only
/// where something asks for it.
template <class Visit>
void each_measured_number(const StepRecord& step, const Visit& visit) {
  visit("gradient_norm", step.gradient_norm);
  visit("noise_scale", step.noise_scale);
  visit("measured_gain", step.measured_gain);
  visit("loss_scale", step.loss_scale);
}

/// How many substeps each core of the step has; of cores() elements.
[[nodiscard]] inline std::vector<std::int64_t> substeps_of(const StepRecord& step) {
  std::vector<std::int64_t> substeps;
  substeps.reserve(static_cast<std::size_t>(step.plan.cores));
  for (CoreRank core; core.value() < step.plan.cores; ++core) {
    substeps.push_back(step.plan.share_of(core, step.assignment).count);
  }
  return substeps;
}

/// Calls visit(std::string_view name, const std::optional<double>& value) for each metric.
template <class Visit>
void each_number(const Evaluation& test, const Visit& visit) {
  visit("loss", std::optional<double>(test.loss));
  visit("accuracy", test.accuracy);
  visit("top_k_accuracy", test.top_k_accuracy);
  visit("mse", test.mse);
  visit("perplexity", test.perplexity);
}

/// Calls visit(std::string_view name, double seconds) for each part of the step.
template <class Visit>
void each_number(const StepTiming& seconds, const Visit& visit) {
  visit("data", seconds.data);
  visit("compute", seconds.compute);
  visit("reduce", seconds.reduce);
  visit("update", seconds.update);
  visit("wall", seconds.wall);
}

/// Calls visit(std::string_view name, value) for each number that the clock shows: a double, or an
/// std::int64_t for `restarts`. Times are in hours.
template <class Visit>
void each_number(const ClockTime& time, const Visit& visit) {
  visit("hours", time.seconds / kSecondsOfHour);
  visit("core_hours", time.core_seconds / kSecondsOfHour);
  visit("money", time.money);
  visit("idle_hours", time.idle_seconds / kSecondsOfHour);
  visit("lost_hours", time.lost_seconds / kSecondsOfHour);
  visit("restart_hours", time.restart_seconds / kSecondsOfHour);
  visit("restarts", time.restarts);
}

}  // namespace rubato
