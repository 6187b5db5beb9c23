#pragma once

#include <vector>

#include "answer.hpp"
#include "answer_document.hpp"

namespace rubato {

/// Tables that show at a glance which choice survives which condition: a row for each choice (a
/// rule, for example) and a column for each trace, one table for each combination of the other
/// conditions. Without a trace column, the columns are the values of the first condition. Empty if
/// there is only one condition besides the baseline's.
[[nodiscard]] std::vector<AnswerDocument::Table> overviews_of(const Answer& answer);

}  // namespace rubato
