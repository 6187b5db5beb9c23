#include "found_runs.hpp"

#include <algorithm>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"
#include "base/core/text/printable.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& folder) {
  return is_there(folder / "config.toml") || is_there(folder / "metrics.jsonl");
}

// Appends the runs in a folder, sorted by name.
void add_runs_in(const fs::path& folder, const std::string& prefix, std::vector<FoundRun>& runs) {
  const auto first = static_cast<std::ptrdiff_t>(runs.size());
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const fs::path& run = entry.path();
    if (!entry.is_directory(ignored) || !is_run(run)) continue;
    runs.push_back({.folder = run, .name = prefix + printable(run.filename().string())});
  }
  std::sort(runs.begin() + first, runs.end(),
            [](const FoundRun& one, const FoundRun& other) { return one.name < other.name; });
}

}  // namespace

std::vector<FoundRun> found_runs(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(
        fmt::format("{}: no such folder; accepted: the folder of a run, or one with runs in it",
                    folder.string()));
  }
  require_readable_folder(folder);
  if (is_run(folder)) return {{.folder = folder, .name = printable(folder.string())}};
  std::vector<FoundRun> runs;
  add_runs_in(folder, "", runs);
  add_runs_in(folder / "tune", "tune/", runs);
  add_runs_in(folder / "runs", "", runs);
  return runs;
}

void refuse_without_runs(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    require_readable_folder(entry.path());
  }
  throw Error(
      fmt::format("{}: contains no runs; accepted: the folder of a run, or one with runs in "
                  "it, such as an experiment",
                  folder.string()));
}

}  // namespace rubato
