#pragma once

#include <rubato/base/state.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/walk.hpp>

namespace rubato {

/// Binds a state to the data that its steps were taken on, as the walk does to the source of the
/// steps. Throws Error where those of a state that is loaded are other ones.
void bind_data(StateVisitor& state, const Objective& objective);

/// Throws Error when the steps of a walk were cut into other epochs than those of `planner`'s
/// trace, or `part` of one was evaluated as it was, after which no step follows in it. What follows
/// the steps in the trace is free.
void require_same_epochs(Planner planner, const Walk& walk, bool part);

}  // namespace rubato
