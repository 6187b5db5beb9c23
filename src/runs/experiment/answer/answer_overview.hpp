#pragma once

#include <vector>

#include "answer.hpp"
#include "answer_document.hpp"

namespace rubato {

/// Tables with a row for each choice (a rule, say) and a column for each trace, one table for each
/// combination of the other conditions: which choice survives what. Without traces to tell apart
/// the columns are the values of the first condition. Empty where there is but one condition beside
/// the baseline's.
[[nodiscard]] std::vector<AnswerDocument::Table> overviews_of(const Answer& answer);

}  // namespace rubato
