// Nothing tells this program of changes, so each update() lists the folders again and reads what
// was appended to the metrics. A run of an experiment moves while it is watched: a worker trains it
// in a folder of its own and renames that when the run has ended (docs/adr/0078). Within a folder
// that is watched, a run is therefore known by its name, and its RecordedRun is replaced when the
// name is found at another path.

#include "watched_runs.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "runs/experiment/conduct/conduct.hpp"
#include "runs/experiment/conduct/worker.hpp"
#include "runs/experiment/design/design_file.hpp"
#include "runs/experiment/design/experiment_plan.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& folder) {
  return is_there(folder / RunFolder::kConfiguration) || is_there(folder / RunFolder::kMetrics);
}

// Appends the runs in some folders, sorted by name. Of several with one name the first is taken if
// it is in the first folder, as the result that workers have published, and else the one that has
// been written last.
void add_runs_in(const std::vector<fs::path>& folders, const std::string& prefix,
                 std::vector<FoundRun>& runs) {
  const auto written = [](const FoundRun& run) {
    std::error_code error;
    const auto time = fs::last_write_time(run.folder / RunFolder::kMetrics, error);
    return error ? fs::file_time_type::min() : time;
  };
  std::map<std::string, FoundRun> found;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      const fs::path& run = entry.path();
      if (!entry.is_directory(ignored) || !is_run(run)) continue;
      FoundRun one{.folder = run, .name = prefix + printable(run.filename().string())};
      FoundRun& known = found.try_emplace(one.name, one).first->second;
      const bool is_result = known.folder.parent_path() == folders.front();
      if (!is_result && written(one) > written(known)) known = std::move(one);
    }
  }
  for (auto& [name, run] : found) runs.push_back(std::move(run));
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
  add_runs_in({folder}, "", runs);
  std::vector<fs::path> tune{folder / kTuneFolder};
  std::vector<fs::path> all{folder / kRunsFolder};
  std::error_code ignored;
  for (const auto& worker : fs::directory_iterator(folder / kWorkFolder, ignored)) {
    tune.push_back(worker.path() / kTuneFolder);
    all.push_back(worker.path() / kRunsFolder);
  }
  add_runs_in(tune, std::string(kTuneMark), runs);
  add_runs_in(all, "", runs);
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

bool is_tuning(std::string_view name) {
  return name.starts_with(kTuneMark);
}

// The names of the runs in the design of an experiment that are known in advance. A design that
// needs a plug-in has none, because watching loads no plug-ins.
std::vector<std::string> planned_runs(const fs::path& folder) {
  if (!is_experiment(folder)) return {};
  try {
    const fs::path file = folder / kDesignFile;
    return names_of_runs(parse_design(read_file(file), file.string()).design);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

WatchedRuns::WatchedRuns(std::vector<fs::path> folders) {
  for (fs::path& folder : folders) {
    if (found_runs(folder).empty() && !is_experiment(folder)) refuse_without_runs(folder);
    const std::vector<std::string> planned = planned_runs(folder);
    const auto tuning = static_cast<std::size_t>(std::ranges::count_if(planned, is_tuning));
    folders_.push_back({.path = std::move(folder),
                        .planned = {.tuning = tuning, .others = planned.size() - tuning}});
  }
  look_for_runs();
}

void WatchedRuns::look_for_runs() {
  for (Folder& folder : folders_) {
    const std::vector<FoundRun> all = found_runs(folder.path);
    const auto tuning =
        static_cast<std::size_t>(std::ranges::count_if(all, is_tuning, &FoundRun::name));
    folder.found = {.tuning = tuning, .others = all.size() - tuning};
    for (const FoundRun& found : all) {
      const bool known = std::ranges::any_of(
          runs_, [&](const Watched& watched) { return watched.run.folder() == found.folder; });
      if (known) continue;
      // The run goes on in the folder of another worker, or has been published.
      const auto moved = std::ranges::find_if(runs_, [&](const Watched& watched) {
        return watched.of == folder.path && watched.name == found.name;
      });
      if (moved != runs_.end()) {
        moved->run = RecordedRun(found.folder);
      } else {
        runs_.push_back({.name = found.name, .of = folder.path, .run = RecordedRun(found.folder)});
      }
    }
  }
}

std::size_t WatchedRuns::expected() const {
  std::size_t all = 0;
  for (const auto& [path, planned, found] : folders_) {
    all += std::max(planned.tuning, found.tuning) + std::max(planned.others, found.others);
  }
  // A run that is named twice is watched once, and one whose folder has disappeared is still shown.
  const bool planned =
      std::ranges::any_of(folders_, [](const Folder& folder) { return folder.planned.others > 0; });
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
