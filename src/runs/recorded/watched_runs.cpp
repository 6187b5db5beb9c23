#include "watched_runs.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

namespace {

namespace fs = std::filesystem;

// Of an experiment (ExperimentFolder).
constexpr const char* kDesign = "design.toml";
constexpr const char* kAnswer = "answer.json";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_run(const fs::path& folder) {
  return is_there(folder / "config.toml") || is_there(folder / "metrics.jsonl");
}

struct Found {
  fs::path folder;
  std::string name;
};

// Those in a folder itself, by name.
void add_runs_in(const fs::path& folder, const std::string& prefix, std::vector<Found>& runs) {
  const auto first = static_cast<std::ptrdiff_t>(runs.size());
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const fs::path& run = entry.path();
    if (!entry.is_directory(ignored) || !is_run(run)) continue;
    runs.push_back({.folder = run, .name = prefix + run.filename().string()});
  }
  std::sort(runs.begin() + first, runs.end(),
            [](const Found& one, const Found& other) { return one.name < other.name; });
}

// The folder itself, or those that it has, as an experiment's has them.
std::vector<Found> found_in(const fs::path& folder) {
  if (is_run(folder)) return {{.folder = folder, .name = folder.string()}};
  std::vector<Found> runs;
  add_runs_in(folder, "", runs);
  add_runs_in(folder / "tune", "tune/", runs);
  add_runs_in(folder / "runs", "", runs);
  return runs;
}

// What an experiment leaves beside a run that failed: its first line.
std::string failure_of(const fs::path& run) {
  std::ifstream file(run.string() + ".failed");
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

WatchedRuns::WatchedRuns(std::vector<fs::path> folders) : folders_(std::move(folders)) {
  for (const fs::path& folder : folders_) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) {
      throw Error(
          fmt::format("{}: no such folder; accepted: the folder of a run, or one with runs in it",
                      folder.string()));
    }
  }
  for (const fs::path& folder : folders_) {
    if (!found_in(folder).empty() || is_there(folder / kDesign)) continue;
    throw Error(
        fmt::format("{}: there is no run in it; accepted: the folder of a run, or one with runs in "
                    "it, such as an experiment",
                    folder.string()));
  }
}

void WatchedRuns::look_for_runs() {
  for (const fs::path& folder : folders_) {
    for (const Found& found : found_in(folder)) {
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
      watched.failure = error.what();
    }
  }
}

bool WatchedRuns::is_single() const {
  return folders_.size() == 1 && runs_.size() == 1 &&
         runs_.front().run.folder() == folders_.front();
}

bool WatchedRuns::has_ended() const {
  for (const fs::path& folder : folders_) {
    if (is_there(folder / kDesign) && !is_there(folder / kAnswer)) return false;
  }
  return std::ranges::all_of(runs_, [](const Watched& watched) {
    return watched.run.has_ended() || !watched.failure.empty();
  });
}

}  // namespace rubato
