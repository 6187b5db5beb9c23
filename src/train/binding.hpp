#pragma once

#include <rubato/plan/plan.hpp>
#include <rubato/plan/step_source.hpp>
#include <rubato/state/state.hpp>
#include <rubato/train/objective.hpp>
#include <rubato/train/records.hpp>

namespace rubato {

/// Puts into a state what its steps were taken on: the source of the steps up to now, and the data.
void bind_state(State& state, const StepSource& source, const TrainResult& result,
                const Objective& objective);

/// Makes the source go on from what `state` has of it. Throws Error when the steps that the state
/// has behind it, which `result` counts, were other ones, or were taken on other data, or are more
/// than epochs of so many minibatches have.
void go_on_from(const State& state, StepSource& source, const TrainResult& result,
                const Objective& objective, std::int64_t minibatches_per_epoch);

/// Throws Error when the steps of `state` were cut into other epochs than those of `planner`'s
/// trace. What follows them in the trace is free. `epoch_begin` is the first step of the epoch that
/// the state is in, or of the next.
void require_same_epochs(const State& state, Planner planner, const TrainResult& result,
                         StepIndex epoch_begin);

}  // namespace rubato
