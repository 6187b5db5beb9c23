#pragma once

#include <span>
#include <string>
#include <string_view>

#include "html.hpp"
#include "runs/experiment/answer/answer.hpp"
#include "runs/experiment/answer/answer_document.hpp"
#include "runs/experiment/answer/tuning_answer.hpp"
#include "runs/experiment/conduct/conduct.hpp"

namespace rubato::page {

/// The labels that tell the cells of a condition apart.
[[nodiscard]] std::string label_of(const Answer& answer, const Answer::Cell& cell);

/// The page of an experiment in `folder`.
[[nodiscard]] Document document_of_experiment(const RecordedExperiment& experiment,
                                              const std::string& folder);

/// The beginning of that page: the findings, and the tables of results.
[[nodiscard]] std::string head_of(const AnswerDocument& answer);

/// The axis on which all runs with this budget have the same length; curves are first drawn against
/// it.
[[nodiscard]] std::string_view axis_of(const RunBudget& budget);

/// The charts of an experiment: for each condition intervals, costs to a target and mean curves,
/// learning curves for each choice and condition, and scores over the learning rate, or over
/// another number that was tuned.
[[nodiscard]] nlohmann::ordered_json charts_of(const Answer& answer,
                                               std::span<const TuningAnswer> tuning = {});

}  // namespace rubato::page
