#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "answer_document.hpp"
#include "runs/experiment/conduct/run_result.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "tuning_answer.hpp"

namespace rubato {

/// The rows of a table that has the best score of each cell, its learning rate, and the span; the
/// rates of cells (Answer::rates) are not empty.
[[nodiscard]] AnswerDocument::Table rates_table(const Answer& answer);
/// The same for programs, with all scores.
[[nodiscard]] nlohmann::ordered_json rates_json(const Answer& answer);

/// How the scores of the answer's cells depend on the learning rate: those of the cells, and of the
/// same at ExperimentPlan::rates. `results` has one element per run of the plan.
[[nodiscard]] std::vector<RateCurve> rate_curves(const ExperimentPlan& plan, const Answer& answer,
                                                 std::span<const RunResult> results);

/// The scores at the values of what was tuned, which count as rates; empty unless all values are
/// positive numbers.
[[nodiscard]] std::vector<RateCurve::Point> points_of(const TuningAnswer& tuning);

}  // namespace rubato
