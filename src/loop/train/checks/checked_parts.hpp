#pragma once

#include <memory>
#include <optional>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/walk.hpp>

#include "loop/train/step/step_engine.hpp"

namespace rubato {

// What a trainer is made of, or Error.

/// Any source but null, of steps of at least one sample.
[[nodiscard]] std::unique_ptr<StepSource> checked_source(std::unique_ptr<StepSource> source);
/// checked_options(); what the source needs is measured.
[[nodiscard]] TrainOptions options_for(const StepSource& source, TrainOptions options);
[[nodiscard]] PlanOptions plan_options(const Objective& objective, const TrainOptions& options);
/// What the source's trace says beforehand, all rows of it checked; empty where it follows none.
[[nodiscard]] std::optional<Planner> checked_trace(const StepSource& source,
                                                   const Objective& objective,
                                                   const TrainOptions& options);
/// What is known beforehand of the steps of a walk through the source's.
[[nodiscard]] StepRange steps_to_come(const StepSource& source, const Walk& walk);
[[nodiscard]] std::unique_ptr<LrSchedule> schedule_of(const TrainOptions& options);

/// Throws Error where the objective cannot be trained so: because it depends on cores, or needs one
/// host, or has no test where one is watched.
void require_trainable(const Objective& objective, const TrainOptions& options,
                       const LrSchedule& schedule);

}  // namespace rubato
