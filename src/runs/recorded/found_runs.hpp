#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rubato {

/// The folder of a run.
struct FoundRun {
  std::filesystem::path folder;
  /// What people call it: the folder as they named it, or its own name within one that they named,
  /// behind "tune/" of an experiment's runs that look for a value.
  std::string name;
};
/// The run of a folder; else those that it has in itself, and as an experiment in "tune" and
/// "runs", by name. Throws Error for what is no folder.
[[nodiscard]] std::vector<FoundRun> found_runs(const std::filesystem::path& folder);

/// Throws Error, which says what would be accepted, for a folder without runs.
[[noreturn]] void refuse_without_runs(const std::filesystem::path& folder);

}  // namespace rubato
