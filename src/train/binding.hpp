#pragma once

#include <rubato/plan/plan.hpp>
#include <rubato/state/state.hpp>
#include <rubato/train/objective.hpp>
#include <rubato/train/records.hpp>

namespace rubato {

/// Puts into a state what its steps were taken on: the rows of the trace up to now, and the data.
void bind_state(State& state, const Planner& planner, const TrainResult& result,
                const Objective& objective);

/// Throws Error when the steps that `state` has behind it, which `result` counts, were taken on
/// other rows than those of the planner's trace, or cut into other epochs, or on other data. What
/// follows them in the trace is free. `epoch_begin` is the first step of the epoch that the state
/// is in, or of the next.
void require_bound(const State& state, const Planner& planner, const TrainResult& result,
                   StepIndex epoch_begin, const Objective& objective);

}  // namespace rubato
