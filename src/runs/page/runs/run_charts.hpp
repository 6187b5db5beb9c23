#pragma once

#include <span>

#include <nlohmann/json.hpp>

#include "thinned_run.hpp"

namespace rubato::page {

/// The charts of runs in the form that web/main.js reads: their curves, and sections of figures. A
/// figure is included only if at least one run has data for it.
[[nodiscard]] nlohmann::ordered_json charts_of(std::span<const ThinnedRun> runs);

}  // namespace rubato::page
