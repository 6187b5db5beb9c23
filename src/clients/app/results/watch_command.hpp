#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "runs/recorded/watched_runs.hpp"

namespace rubato::app {

/// The lines that show runs: the view of a single run, or else a line with the number of runs that
/// have ended and one for each run, those in training first. If there are more than `rows` lines,
/// the last one says how many are left out.
[[nodiscard]] std::vector<std::string> watch_lines(
    const WatchedRuns& runs, const ViewStyle& style,
    std::size_t rows = std::numeric_limits<std::size_t>::max());

}  // namespace rubato::app
