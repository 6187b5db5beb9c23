#pragma once

#include <span>

#include <nlohmann/json.hpp>

#include "thinned_run.hpp"

namespace rubato::page {

/// The charts of runs, as web/main.js draws them: their curves, and sections of figures. A figure
/// is there only where a run has something to show in it.
[[nodiscard]] nlohmann::ordered_json charts_of(std::span<const ThinnedRun> runs);

}  // namespace rubato::page
