#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <rubato/base/state.hpp>
#include <rubato/steps/cluster_model.hpp>
#include <rubato/steps/step_source.hpp>

#include "base/core/seconds.hpp"

// Helpers of the sources with a clock.

namespace rubato {

/// Advances the clock and charges for `core_seconds`: `money`, or at the constant price.
void spend_core_seconds(ClockTime& time, double seconds, double core_seconds,
                        const ClusterModel& cluster, std::optional<double> money = {});
/// Advances the clock and charges for `cores` cores during all of it.
void spend(ClockTime& time, double seconds, std::int64_t cores, const ClusterModel& cluster);

/// The checkpoints that follow `more` steps after `steps` others.
[[nodiscard]] std::int64_t checkpoints_in(const ClusterModel& cluster, std::int64_t steps,
                                          std::int64_t more);
/// Seconds of the step after `steps` others, including the checkpoint if one follows it.
[[nodiscard]] double seconds_of_step(StepTimes& times, std::int64_t minibatches, std::int64_t cores,
                                     std::span<const std::int64_t> host_cores, std::int64_t steps);

/// All parameters of a cluster on which times depend: all except its price.
[[nodiscard]] std::string text_of(const ClusterModel& cluster);

/// Visits the clock in the state of a source that is bound to `binding`. Throws Error for a state
/// with another binding.
void visit_clock(StateVisitor& state, const std::string& binding, ClockTime& time);

}  // namespace rubato
