#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rubato {

/// The folder of a run, and a name for it.
struct FoundRun {
  std::filesystem::path folder;
  /// Name for people: the folder as they named it, or its name within the folder that they named;
  /// with the prefix "tune/" for the runs with which an experiment tunes an option.
  std::string name;
};
/// The run in `folder`, if it is a run folder; otherwise the runs in it, and in its folders "tune"
/// and "runs" as for an experiment, sorted by name in each. Throws Error if it is not a folder.
[[nodiscard]] std::vector<FoundRun> found_runs(const std::filesystem::path& folder);

/// Throws the Error for a folder without runs, which says what is accepted.
[[noreturn]] void refuse_without_runs(const std::filesystem::path& folder);

}  // namespace rubato
