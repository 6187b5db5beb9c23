#include "watched_runs.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include <rubato/base/error.hpp>

#include "base/core/text/printable.hpp"
#include "found_runs.hpp"
#include "runs/experiment/conduct/recorded_experiment.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

// What an experiment leaves beside a run that failed: its first line.
std::string failure_of(const fs::path& run) {
  std::ifstream file(run.string() + ".failed");
  std::string line;
  std::getline(file, line);
  return printable(line);
}

}  // namespace

WatchedRuns::WatchedRuns(std::vector<fs::path> folders) : folders_(std::move(folders)) {
  for (const fs::path& folder : folders_) {
    if (found_runs(folder).empty() && !is_experiment(folder)) refuse_without_runs(folder);
  }
  look_for_runs();
}

void WatchedRuns::look_for_runs() {
  for (const fs::path& folder : folders_) {
    for (const FoundRun& found : found_runs(folder)) {
      const bool known = std::ranges::any_of(
          runs_, [&](const Watched& watched) { return watched.run.folder() == found.folder; });
      if (!known) runs_.push_back({.name = found.name, .run = RecordedRun(found.folder)});
    }
  }
}

void WatchedRuns::update() {
  look_for_runs();
  for (Watched& watched : runs_) {
    // What has ended is not read again: nobody writes it.
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
         runs_.front().run.folder() == folders_.front();
}

bool WatchedRuns::has_ended() const {
  for (const fs::path& folder : folders_) {
    if (is_experiment(folder) && !has_answer(folder)) return false;
  }
  return std::ranges::all_of(runs_, [](const Watched& watched) {
    return watched.run.has_ended() || !watched.failure.empty();
  });
}

}  // namespace rubato
