#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "worker.hpp"

namespace rubato {

/// The folder of an experiment. Any number of processes may work in it at a time, on any machines.
///
///     design.toml   reproduces the experiment: rubato compare --config DIR/design.toml
///     plan.txt      the names of its runs, one in each line
///     traces/       copies of the files that --trace named
///     runs/         for each run NAME its folder, NAME.toml, and NAME.log or NAME.failed, and
///                   NAME.claim1 while a worker does it; if it shares its first steps with
///                   another run, NAME.fork.toml as well; with --tensorboard also an event file
///                   with the columns of HPARAMS
///     tune/         the same for the runs that tune the option of --tune
///     workers/      for each worker a folder with the runs that are under way (Worker)
///     shared/       the first steps of runs that others share (PrefixOfTask)
///     different/    results that differ from those in runs/ and tune/, each as NAME@MACHINE
///     damaged/      run folders that were changed after they had ended; these runs are repeated
///     answer.md     the answer for people
///     answer.csv    a line for each cell; runs.csv has one for each run
///     answer.json   the whole answer
class ExperimentFolder {
 public:
  /// Creates the folder, or opens one that is empty or already an experiment's. Throws Error for
  /// any other folder.
  explicit ExperimentFolder(std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The folder that contains the run folders, except those of the runs that tune.
  [[nodiscard]] std::filesystem::path runs() const;
  /// This process as one that does runs of the experiment.
  [[nodiscard]] const Worker& worker() const { return *worker_; }

  /// Copies the design's trace files into the folder and returns the design with these copies, and
  /// with all other paths absolute. Throws Error if the folder has a different trace of the same
  /// name, or if a file cannot be read.
  [[nodiscard]] Design adopt(const Design& design) const;
  /// Writes design.toml. Throws OutputError.
  void write_design(const Design& design) const;
  /// Writes plan.txt with the names of runs (names_of_runs()). Throws OutputError.
  void write_plan(const std::vector<std::string>& names) const;

  [[nodiscard]] RunFiles files_of(const PlannedRun& run, bool tuning) const;
  /// Checks that the run's configuration, if it exists, differs at most in options that do not
  /// affect results. Throws Error, naming the options that differ.
  void require_same(const PlannedRun& run, const RunFiles& files) const;
  /// The same, and writes the configuration if there is none. Throws OutputError, too.
  void prepare(const PlannedRun& run, const RunFiles& files) const;

  /// Writes the configuration of the run as a fork of the steps in the folder `of`, and returns its
  /// file. Throws OutputError.
  [[nodiscard]] std::filesystem::path prepare_fork(PlannedRun run, const RunFiles& files,
                                                   const std::filesystem::path& of,
                                                   std::int64_t steps) const;
  /// The folder for the first steps of a run, if others share them.
  [[nodiscard]] std::filesystem::path shared_steps_of(const PlannedRun& run,
                                                      std::int64_t steps) const;

  void write(std::string_view name, std::string_view content) const;

 private:
  [[nodiscard]] std::string adopt_trace(const std::string& trace, const std::string& label) const;
  [[nodiscard]] std::string config_text(const PlannedRun& run) const;

  std::filesystem::path path_;
  std::unique_ptr<Worker> worker_;
};

/// The file that marks a folder as that of an experiment.
inline constexpr std::string_view kDesignFile = "design.toml";
inline constexpr std::string_view kAnswerFile = "answer.json";
inline constexpr std::string_view kPlanFile = "plan.txt";

}  // namespace rubato
