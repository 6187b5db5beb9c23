#pragma once

#include <rubato/base/state.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/walk.hpp>

namespace rubato {

/// Binds a state to the data of its steps, as the walk binds it to their source. Throws Error if a
/// loaded state has other data.
void bind_data(StateVisitor& state, const Objective& objective);

/// Throws Error if the steps of a walk form other epochs than those of `planner`'s trace, or if
/// `part` of an epoch was evaluated and the trace has further steps in it. The rows after the
/// walk's steps may differ.
void require_same_epochs(Planner planner, const Walk& walk, bool part);

}  // namespace rubato
