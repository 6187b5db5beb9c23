#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <rubato/runs/run_configuration.hpp>

#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/runs.hpp"

namespace rubato {

/// Where a run of an experiment is.
struct RunFiles {
  /// The run folder.
  std::filesystem::path folder;
  /// Its configuration, as `rubato train --config` takes it.
  std::filesystem::path config;
  /// What it prints to stderr; not there where that was nothing.
  std::filesystem::path log;
  /// What a run that failed has said, where it did.
  std::filesystem::path failed;
};

/// What can be seen of a run.
enum class RunState {
  absent,  ///< nothing, or nothing worth going on with
  begun,   ///< it can go on
  ended,   ///< its summary is there
  failed,  ///< it said why
};
[[nodiscard]] RunState state_of(const RunFiles& files);
/// Of a run of the experiment in `folder`, or of one of those that tune.
[[nodiscard]] RunFiles files_of(const std::filesystem::path& folder, const std::string& run,
                                bool tuning);

/// The folder of an experiment. One process at a time works in it, its runs included.
///
///     design.toml   what reproduces the experiment: rubato compare --config DIR/design.toml
///     traces/       copies of the files that --trace named
///     runs/         of each run NAME its folder, NAME.toml, and NAME.log or NAME.failed
///                   with --tensorboard also an event file with the columns of HPARAMS
///     tune/         the same of the runs that looked for what --tune asks for
///     damaged/      run folders that were changed after they had ended; they are done again
///     answer.md     what came out
///     answer.csv    a line for each cell; runs.csv has one for each run
///     answer.json   all of it
class ExperimentFolder {
 public:
  /// Makes the folder, or takes one that an experiment has made or that is empty. Waits some
  /// seconds for runs that have been killed to be gone. Throws Error for another folder, and when
  /// another process works in it.
  explicit ExperimentFolder(std::filesystem::path path);
  ~ExperimentFolder();
  ExperimentFolder(const ExperimentFolder&) = delete;
  ExperimentFolder& operator=(const ExperimentFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Where the run folders are, but for those of the runs that tune.
  [[nodiscard]] std::filesystem::path runs() const;
  /// For children to inherit: the lock is held until they have ended, too.
  [[nodiscard]] int lock() const { return descriptor_; }

  /// The design with the files of its traces in the folder, where they are copied to, and other
  /// paths absolute. Throws Error where a trace of that name is there already and is another, and
  /// where a file cannot be read.
  [[nodiscard]] Design adopt(const Design& design) const;
  /// Writes design.toml. Throws OutputError.
  void write_design(const Design& design) const;

  [[nodiscard]] RunFiles files_of(const PlannedRun& run, bool tuning) const;
  /// Writes the run's configuration, or makes sure that the one that is there is the same but for
  /// options that change no bit. Throws Error naming those that differ; OutputError.
  void prepare(const PlannedRun& run, const RunFiles& files) const;

  /// Moves the folder of a run into damaged/, so that the run begins anew; returns where it is.
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

/// The name of the file that makes a folder an experiment's.
inline constexpr std::string_view kDesignFile = "design.toml";
inline constexpr std::string_view kAnswerFile = "answer.json";

}  // namespace rubato
