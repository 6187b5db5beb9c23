#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"

namespace rubato {

/// The place in another run where a fork begins, which --from names as RUN@STEP: the state after
/// `step` steps of the run in the folder `run`. Parsed<ForkPoint> throws Error for other text, and
/// does not look for the run.
struct ForkPoint {
  std::filesystem::path run{};
  /// At least 0; 0 is the beginning of the run.
  std::int64_t step = 0;
};

/// The text of --from with its folder mapped by `map`.
[[nodiscard]] std::string map_fork_point(const std::string& text, const PathMap& map);

/// Throws Error, naming each option, if a fork of a run of the configuration `before` cannot have
/// the options of `now`. The paths of both must be of one kind: see with_paths_from().
void require_forkable(const RunConfiguration& before, const RunConfiguration& now);

/// The names of the options in which a fork differs from its run, of those that affect its bits.
[[nodiscard]] std::vector<std::string> changed_in_fork(const RunConfiguration& before,
                                                       const RunConfiguration& now);

}  // namespace rubato
