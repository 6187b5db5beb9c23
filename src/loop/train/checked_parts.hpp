#pragma once

#include <memory>
#include <optional>

#include <rubato/base/state.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/walk.hpp>

#include "loop/train/step/step_engine.hpp"

namespace rubato {

/// Binds a state to the data of its steps, as the walk binds it to their source. Throws Error if a
/// loaded state has other data.
void bind_data(StateVisitor& state, const Objective& objective);

/// Throws Error if the steps of a walk form other epochs than those of `planner`'s trace, or if
/// `part` of an epoch was evaluated and the trace has further steps in it. The rows after the
/// walk's steps may differ.
void require_same_epochs(Planner planner, const Walk& walk, bool part);

// The parts of a trainer, checked: each function throws Error for a part that it refuses.

/// Accepts any source but null, if its steps have at least one sample.
[[nodiscard]] std::unique_ptr<StepSource> checked_source(std::unique_ptr<StepSource> source);
/// Returns checked_options(), with log_noise set if the source needs the noise.
[[nodiscard]] TrainOptions options_for(const StepSource& source, TrainOptions options);
[[nodiscard]] PlanOptions plan_options(const Objective& objective, const TrainOptions& options);
/// Returns the plan of the source's trace, all rows of it checked; empty if the source has none.
[[nodiscard]] std::optional<Planner> checked_trace(const StepSource& source,
                                                   const Objective& objective,
                                                   const TrainOptions& options);
/// Returns what is known in advance of the steps of a walk.
[[nodiscard]] StepRange steps_to_come(const StepSource& source, const Walk& walk);
[[nodiscard]] std::unique_ptr<LrSchedule> schedule_of(const TrainOptions& options);

/// Throws Error if the objective cannot be trained in this way: it depends on cores, needs one
/// host, or lacks a test that is watched.
void require_trainable(const Objective& objective, const TrainOptions& options,
                       const LrSchedule& schedule);

}  // namespace rubato
