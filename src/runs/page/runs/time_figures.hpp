#pragma once

#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "thinned_run.hpp"

namespace rubato::page {

/// The times of the runs by activity, as bars: wall-clock time, thread time, and modelled time if
/// there is any.
[[nodiscard]] std::vector<nlohmann::ordered_json> time_figures(std::span<const ThinnedRun> runs);

}  // namespace rubato::page
