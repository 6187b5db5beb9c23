#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "recorded_run.hpp"

namespace rubato {

/// The folder of a run, and a name for it.
struct FoundRun {
  std::filesystem::path folder;
  /// Name for people: the folder as they named it, or its name within the folder that they named;
  /// with the prefix "tune/" for the runs with which an experiment tunes an option.
  std::string name;
};
/// The run in `folder`, if it is a run folder; otherwise the runs in it, and in its folders "tune"
/// and "runs" as for an experiment, sorted by name in each, with those at which workers of the
/// experiment are. Throws Error if it is not a folder.
[[nodiscard]] std::vector<FoundRun> found_runs(const std::filesystem::path& folder);

/// Throws the Error for a folder without runs, which says what is accepted.
[[noreturn]] void refuse_without_runs(const std::filesystem::path& folder);

/// The runs in some folders: run folders, and folders that contain run folders, as those of
/// experiments do, where further runs may appear.
class WatchedRuns {
 public:
  /// Throws Error for a path that is not a folder, and for a folder without runs.
  explicit WatchedRuns(std::vector<std::filesystem::path> folders);

  /// Reads everything that was written since the last call. Throws Error if the files of a single
  /// run folder are not those of a run; among several, the run has a failure.
  void update();
  struct Watched {
    /// Name for people (FoundRun::name).
    std::string name;
    /// The folder in which it was found, one of those that are watched.
    std::filesystem::path of;
    RecordedRun run;
    /// The first line of its error if it failed in an experiment, or the reason why it cannot be
    /// read; empty otherwise.
    std::string failure{};
  };
  /// Runs in the order of the folders, and by name within a folder; runs that appear later are
  /// last.
  [[nodiscard]] const std::deque<Watched>& runs() const { return runs_; }
  /// Number of runs that are expected: those that the designs of experiments have, and all other
  /// runs found.
  [[nodiscard]] std::size_t expected() const;
  /// Whether a single run folder is watched, and nothing else.
  [[nodiscard]] bool is_single() const;
  /// Whether all runs have ended or failed; an experiment must also have its answer.
  [[nodiscard]] bool has_ended() const;

 private:
  void look_for_runs();

  struct Folder {
    std::filesystem::path path;
    /// Numbers of runs of an experiment.
    struct Runs {
      std::size_t tuning = 0;
      std::size_t others = 0;
    };
    /// The runs in its design, as far as it says; 0 if there is none, or if it cannot be read.
    Runs planned{};
    Runs found{};
  };

  std::vector<Folder> folders_;
  std::deque<Watched> runs_;
};

}  // namespace rubato
