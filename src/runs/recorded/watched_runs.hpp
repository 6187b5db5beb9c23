#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "recorded_run.hpp"

namespace rubato {

/// The runs of folders: run folders, and folders that have such in them, as those of experiments
/// do, where runs may come as they begin.
class WatchedRuns {
 public:
  /// Throws Error for what is no folder.
  explicit WatchedRuns(std::vector<std::filesystem::path> folders);

  /// Reads what has come since. Throws Error for files that are none of a run.
  void update();
  struct Watched {
    /// By which people know it: the folder's name, behind those that its experiment gives it.
    std::string name;
    RecordedRun run;
    /// What keeps it from being read; empty where nothing does.
    std::string failure{};
  };
  /// In the order of the folders, and by name within one.
  [[nodiscard]] const std::deque<Watched>& runs() const { return runs_; }
  /// How many runs there will be: those of the designs of experiments, and all others that are
  /// there.
  [[nodiscard]] std::size_t expected() const;
  /// Whether it is one run folder and nothing else.
  [[nodiscard]] bool is_single() const;
  /// Whether all of them have ended; in an experiment not before it has its answer.
  [[nodiscard]] bool has_ended() const;

 private:
  void look_for_runs();

  struct Folder {
    std::filesystem::path path;
    /// By the design of an experiment; 0 where there is none that can be read.
    std::size_t planned = 0;
    std::size_t found = 0;
  };

  std::vector<Folder> folders_;
  std::deque<Watched> runs_;
};

}  // namespace rubato
