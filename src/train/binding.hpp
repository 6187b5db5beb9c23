#pragma once

#include <rubato/plan/plan.hpp>
#include <rubato/plan/walk.hpp>
#include <rubato/state/state.hpp>
#include <rubato/train/objective.hpp>

namespace rubato {

/// Puts into a state what data its steps were taken on; the walk puts the source of the steps.
void bind_data(State& state, const Objective& objective);

/// Throws Error where those are other ones.
void require_same_data(const State& state, const Objective& objective);

/// Throws Error when the steps of a walk were cut into other epochs than those of `planner`'s
/// trace, or `part` of one was evaluated as it was, after which no step follows in it. What follows
/// the steps in the trace is free.
void require_same_epochs(Planner planner, const Walk& walk, bool part);

}  // namespace rubato
