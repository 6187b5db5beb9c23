#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <rubato/runs/run_configuration.hpp>

#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/experiment_plan.hpp"

namespace rubato {

/// The paths of a run of an experiment.
struct RunFiles {
  /// The run folder.
  std::filesystem::path folder;
  /// Its configuration, readable by `rubato train --config`.
  std::filesystem::path config;
  /// Its stderr; the file is removed if it stays empty.
  std::filesystem::path log;
  /// The message of a run that failed; exists only then.
  std::filesystem::path failed;
};

/// The state of a run, as its files show it.
enum class RunState {
  absent,  ///< no files, or none that the run could continue from
  begun,   ///< a checkpoint exists, so the run can continue
  ended,   ///< the summary exists
  failed,  ///< the message of the failure exists
};
[[nodiscard]] RunState state_of(const RunFiles& files);
/// The paths of a run of the experiment in `folder`; `tuning` selects the runs that tune.
[[nodiscard]] RunFiles files_of(const std::filesystem::path& folder, const std::string& run,
                                bool tuning);

/// The folder of an experiment. One process at a time works in it, its runs included.
///
///     design.toml   reproduces the experiment: rubato compare --config DIR/design.toml
///     traces/       copies of the files that --trace named
///     runs/         for each run NAME its folder, NAME.toml, and NAME.log or NAME.failed; if it
///                   shares its first steps with another run, NAME.fork.toml as well;
///                   with --tensorboard also an event file with the columns of HPARAMS
///     tune/         the same for the runs that tune the option of --tune
///     damaged/      run folders that were changed after they had ended; these runs are repeated
///     answer.md     the answer for people
///     answer.csv    a line for each cell; runs.csv has one for each run
///     answer.json   the whole answer
class ExperimentFolder {
 public:
  /// Creates the folder, or opens one that is empty or already an experiment's. Waits a few seconds
  /// for runs that were killed to disappear. Throws Error for any other folder, and if another
  /// process works in it.
  explicit ExperimentFolder(std::filesystem::path path);
  ~ExperimentFolder();
  ExperimentFolder(const ExperimentFolder&) = delete;
  ExperimentFolder& operator=(const ExperimentFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The folder that contains the run folders, except those of the runs that tune.
  [[nodiscard]] std::filesystem::path runs() const;
  /// Descriptor that holds the lock. Children inherit it, so that the lock is held until they have
  /// ended, too.
  [[nodiscard]] int lock() const { return descriptor_; }

  /// Copies the design's trace files into the folder and returns the design with these copies, and
  /// with all other paths absolute. Throws Error if the folder has a different trace of the same
  /// name, or if a file cannot be read.
  [[nodiscard]] Design adopt(const Design& design) const;
  /// Writes design.toml. Throws OutputError.
  void write_design(const Design& design) const;

  [[nodiscard]] RunFiles files_of(const PlannedRun& run, bool tuning) const;
  /// Writes the run's configuration, or checks that the existing one differs at most in options
  /// that do not affect results. Throws Error, naming the options that differ, and OutputError.
  void prepare(const PlannedRun& run, const RunFiles& files) const;

  /// Writes the configuration of the run as a fork of another one of the experiment after `steps`
  /// steps, and returns its file. Throws OutputError.
  [[nodiscard]] std::filesystem::path prepare_fork(PlannedRun run, const RunFiles& files,
                                                   const RunFiles& of, std::int64_t steps) const;

  /// Moves the folder of a run into damaged/, so that the run starts anew; returns its new path.
  /// Throws OutputError.
  [[nodiscard]] std::filesystem::path set_aside(const RunFiles& files) const;

  void write(std::string_view name, std::string_view content) const;

 private:
  [[nodiscard]] std::string adopt_trace(const std::string& trace, const std::string& label) const;
  [[nodiscard]] std::string config_text(const PlannedRun& run) const;
  void take_lock();

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// The file that marks a folder as that of an experiment.
inline constexpr std::string_view kDesignFile = "design.toml";
inline constexpr std::string_view kAnswerFile = "answer.json";

}  // namespace rubato
