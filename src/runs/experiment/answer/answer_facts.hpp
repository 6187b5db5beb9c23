#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "answer.hpp"
#include "runs/experiment/design/design.hpp"

namespace rubato {

/// What was compared: a line each.
[[nodiscard]] std::vector<std::string> facts_of(const Design& design, const Answer& answer,
                                                std::span<const TuningAnswer> tuning);

/// Where no step of a condition's runs had another batch size or number of cores than the others,
/// though its trace is no number: that it never changed in what they used of it. Empty elsewhere.
[[nodiscard]] std::string constant_in_words(const Answer& answer, std::size_t condition);

/// Those of `cells` that have not spent what the one limit of the design allows, by more than 1 %;
/// they are called by the labels of these columns. Empty where there are none.
[[nodiscard]] std::string off_budget_in_words(const Design& design,
                                              std::span<const Answer::Cell* const> cells,
                                              std::span<const std::size_t> columns);

}  // namespace rubato
