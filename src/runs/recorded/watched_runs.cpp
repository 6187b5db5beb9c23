#include "watched_runs.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <system_error>
#include <utility>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "runs/experiment/conduct/conduct.hpp"
#include "runs/experiment/design/design_file.hpp"
#include "runs/experiment/design/experiment_plan.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& folder) {
  return is_there(folder / RunFolder::kConfiguration) || is_there(folder / RunFolder::kMetrics);
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
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    if (error == std::errc::permission_denied) {
      throw_error("{}: cannot look for it: {}; accepted: a path whose folders you may enter",
                  folder.string(), error.message());
    }
    throw_error("{}: no such folder; accepted: the folder of a run, or one with runs in it",
                folder.string());
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
  throw_error(
      "{}: contains no runs; accepted: the folder of a run, or one with runs in it, such as an "
      "experiment",
      folder.string());
}

namespace {

// The first line of the message that an experiment keeps next to a run that failed.
std::string failure_of(const fs::path& run) {
  const fs::path said = run.string() + ".failed";
  std::error_code ignored;
  if (!fs::is_regular_file(said, ignored)) return {};
  std::ifstream file(said);
  std::string line;
  std::getline(file, line);
  return printable(line);
}

// Number of runs in the design of an experiment, including those that tune. A design that needs a
// plug-in counts as 0, because watching loads no plug-ins.
std::size_t planned_runs(const fs::path& folder) {
  if (!is_experiment(folder)) return 0;
  try {
    const fs::path file = folder / kDesignFile;
    const Design design = parse_design(read_file(file), file.string()).design;
    std::size_t runs = plan_of(design).runs.size();
    if (!design.tuning) return runs;
    for (const TuningCell& cell : tuning_of(design)) runs += cell.runs.size();
    return runs;
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

WatchedRuns::WatchedRuns(std::vector<fs::path> folders) {
  for (fs::path& folder : folders) {
    if (found_runs(folder).empty() && !is_experiment(folder)) refuse_without_runs(folder);
    const std::size_t planned = planned_runs(folder);
    folders_.push_back({.path = std::move(folder), .planned = planned});
  }
  look_for_runs();
}

void WatchedRuns::look_for_runs() {
  for (Folder& folder : folders_) {
    const std::vector<FoundRun> all = found_runs(folder.path);
    folder.found = all.size();
    for (const FoundRun& found : all) {
      const bool known = std::ranges::any_of(
          runs_, [&](const Watched& watched) { return watched.run.folder() == found.folder; });
      if (!known) runs_.push_back({.name = found.name, .run = RecordedRun(found.folder)});
    }
  }
}

std::size_t WatchedRuns::expected() const {
  std::size_t all = 0;
  for (const Folder& folder : folders_) all += std::max(folder.planned, folder.found);
  // A run that is named twice is watched once, and one whose folder has disappeared is still shown.
  const bool planned =
      std::ranges::any_of(folders_, [](const Folder& folder) { return folder.planned > 0; });
  return planned ? std::max(all, runs_.size()) : runs_.size();
}

void WatchedRuns::update() {
  look_for_runs();
  for (Watched& watched : runs_) {
    // A run that has ended is not read again, because its files no longer change.
    if (watched.run.has_ended() && !is_single()) continue;
    watched.failure = failure_of(watched.run.folder());
    try {
      watched.run.update();
    } catch (const Error& error) {
      if (is_single()) throw;
      watched.failure = printable(error.what());
    }
  }
}

bool WatchedRuns::is_single() const {
  return folders_.size() == 1 && runs_.size() == 1 &&
         runs_.front().run.folder() == folders_.front().path;
}

bool WatchedRuns::has_ended() const {
  for (const Folder& folder : folders_) {
    if (is_experiment(folder.path) && !has_answer(folder.path)) return false;
  }
  return std::ranges::all_of(runs_, [](const Watched& watched) {
    return watched.run.has_ended() || !watched.failure.empty();
  });
}

}  // namespace rubato
