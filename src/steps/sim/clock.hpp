#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <rubato/base/state.hpp>
#include <rubato/steps/cluster_model.hpp>
#include <rubato/steps/step_source.hpp>

#include "base/core/text/hour.hpp"

// What sources with a clock have in common.

namespace rubato {

/// Lets time pass, and charges for so many seconds of cores.
void spend_core_seconds(ClockTime& time, double seconds, double core_seconds,
                        const ClusterModel& cluster);
/// The same for cores that are all there for as long.
void spend(ClockTime& time, double seconds, std::int64_t cores, const ClusterModel& cluster);

/// Seconds of the step after `steps` others, with its checkpoint where there is one.
[[nodiscard]] double seconds_of_step(StepTimes& times, std::int64_t minibatches, std::int64_t cores,
                                     std::span<const std::int64_t> host_cores, std::int64_t steps);

/// All of a cluster that times depend on, which is all but its price.
[[nodiscard]] std::string text_of(const ClusterModel& cluster);

/// The clock in the state of a source that is bound to `binding`. Throws Error where the state is
/// of another one.
void visit_clock(StateVisitor& state, const std::string& binding, ClockTime& time);

}  // namespace rubato
