#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "runs/recorded/watched_runs.hpp"

namespace rubato::app {

/// What is shown of runs: the view of a single one, else a line of how many have ended and one for
/// each run, those that train first. Of more than `rows` lines the last says how many are left out.
[[nodiscard]] std::vector<std::string> watch_lines(
    const WatchedRuns& runs, const ViewStyle& style,
    std::size_t rows = std::numeric_limits<std::size_t>::max());

}  // namespace rubato::app
