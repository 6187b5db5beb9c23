#pragma once

#include <string>
#include <vector>

#include "base/core/text/text.hpp"
#include "runs/whatif/whatif.hpp"

namespace rubato::app {

/// The events of a run, with the numbers by which --without names them.
[[nodiscard]] std::string table_of_events(const std::vector<RunEvent>& events, LineWidth width);

/// Says what a plan will take.
[[nodiscard]] std::string words_of_plan(const WhatIfPlan& plan);

/// The answer: the run, and what it would have been, with effects and how they vary.
[[nodiscard]] std::string table_of_answer(const WhatIfResult& result, LineWidth width);

}  // namespace rubato::app
