#pragma once

#include <nlohmann/json_fwd.hpp>

#include "all_conditions.hpp"
#include "answer.hpp"
#include "answer_document.hpp"

namespace rubato {

// The summary of an answer over all conditions, for people and for programs.

[[nodiscard]] AnswerDocument::Table table_of(const AllConditions& all, const Answer& answer);
/// docs/schemas/answer.json describes it.
[[nodiscard]] nlohmann::ordered_json json_of(const AllConditions& all, const Answer& answer);

}  // namespace rubato
