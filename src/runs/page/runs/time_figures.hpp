#pragma once

#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "thinned_run.hpp"

namespace rubato::page {

/// Where the time of the runs went, as bars: on the wall, of the threads, and on the modelled clock
/// where there is one.
[[nodiscard]] std::vector<nlohmann::ordered_json> time_figures(std::span<const ThinnedRun> runs);

}  // namespace rubato::page
