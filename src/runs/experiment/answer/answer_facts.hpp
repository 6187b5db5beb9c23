#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "answer.hpp"
#include "answer_document.hpp"
#include "runs/experiment/design/design.hpp"

namespace rubato {

/// Facts about what was compared, one line each.
[[nodiscard]] std::vector<std::string> facts_of(const Design& design, const Answer& answer,
                                                std::span<const TuningAnswer> tuning);

/// Says so if all steps of a condition's runs had the same batch size and number of cores although
/// its trace is not a plain number: the runs never reached a change of the trace. Empty otherwise.
[[nodiscard]] std::string constant_in_words(const Answer& answer, std::size_t condition);

/// Names the cells that differ by more than 1 % from what the design's only limit allows; each is
/// named by its labels in `columns`. Empty if there is no such cell, or not exactly one limit.
[[nodiscard]] std::string off_budget_in_words(const Design& design,
                                              std::span<const Answer::Cell* const> cells,
                                              std::span<const std::size_t> columns);

/// Tables that show at a glance which choice survives which condition: a row for each choice (a
/// rule, for example) and a column for each trace, one table for each combination of the other
/// conditions. Without a trace column, the columns are the values of the first condition. Empty if
/// there is only one condition besides the baseline's.
[[nodiscard]] std::vector<AnswerDocument::Table> overviews_of(const Answer& answer);

}  // namespace rubato
