#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/run_folder.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/seconds.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato {

/// The facts about a run that a checkpoint holds besides its training: the options it was made
/// with, the files that they name, and for how long it has been trained.
class RunRecord final : public Observer {
 public:
  /// `config` is the text of the run's configuration file. visit_state() throws Error if the files
  /// are not those that the checkpoint was trained with.
  RunRecord(std::string config, std::span<const WorkloadFile> files);

  [[nodiscard]] std::string_view name() const override { return "run"; }
  void visit_state(StateVisitor& state, const Training& training) override;

  /// Seconds of training in this process and those before it.
  [[nodiscard]] double wall_seconds() const { return seconds_before_ + since_.seconds(); }

 private:
  std::string config_;
  // The options that name files, and the SHA-256 of each.
  std::vector<std::pair<std::string, std::string>> files_;
  double seconds_before_ = 0;
  Stopwatch since_;
};

/// The configuration that a checkpoint was taken with, its names read with `extensions`. Throws
/// Error if it has none, or one that this version cannot read.
[[nodiscard]] RunConfiguration configuration_in(const State& checkpoint,
                                                const Extensions& extensions = {});

/// The text of the configuration file of a run in `folder`.
[[nodiscard]] std::string config_text(const RunConfiguration& run, const RunFolder& folder);

/// Writes the configuration, the trace or the availability, and the workload's files as they were
/// read, so that the folder alone reproduces the run. The configuration has a comment with `note`;
/// if that is empty, the comment that was there stays. Returns the text of the configuration.
std::string write_origin(const RunFolder& folder, RunConfiguration run, const RunSteps& steps,
                         std::span<const WorkloadFile> files, std::string_view note = {});

/// How a run continues from a checkpoint in its folder.
struct Continuation {
  /// The file of the checkpoint.
  std::filesystem::path from{};
  /// Whether it was named by the user, not found as the newest.
  bool named = false;
  /// The configuration that the run continues with: it says where the data of the run are now, and
  /// what its names mean.
  const RunConfiguration& now;
  /// The other files that the run depends on.
  std::span<const WorkloadFile> files{};
};

/// Sets aside what a run has come to since the checkpoint that it continues from, if there is
/// anything: checkpoints newer than the one that was named, and the results of a run that was
/// finished. They go into the folder RUN/newer-than-step-N, which is a run of its own and is
/// returned; empty if there was nothing.
///
/// To be called once the checkpoint has been loaded, and so been found to be good, and before
/// anything is written. It happens as a whole: if it is interrupted, either the run is as before or
/// finish_setting_aside() completes it. Throws OutputError.
std::optional<std::filesystem::path> set_aside_newer(const RunFolder& run,
                                                     const Continuation& continuation);
/// Completes what a process was killed in. Call it before looking for checkpoints. Throws
/// OutputError.
void finish_setting_aside(const RunFolder& run);

/// Leaves a note in a folder that its run has continued in the folder `to` since `steps`, because
/// hosts that come and go could not continue it here. Ignores failure to write the note.
void mark_moved(const std::filesystem::path& folder, const std::filesystem::path& to,
                std::int64_t steps) noexcept;
/// Removes the note, when the run is back.
void unmark_moved(const std::filesystem::path& folder) noexcept;
/// Throws Error, naming the other folder, if there is such a note.
void require_not_moved(const std::filesystem::path& folder);

/// Removes a folder when it is destroyed, unless its path is empty then.
struct RemovedFolder {
  explicit RemovedFolder(std::filesystem::path folder = {}) : path(std::move(folder)) {}
  RemovedFolder(const RemovedFolder&) = delete;
  RemovedFolder& operator=(const RemovedFolder&) = delete;
  ~RemovedFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

/// An unfinished run, for another host to continue.
struct Handover {
  State state;
  /// The files of its folder that the state relies on, by name: its metrics, and those for
  /// TensorBoard.
  std::map<std::string, std::string> records;
};

/// The records in the folder of a run, by name: its metrics, and those for TensorBoard.
[[nodiscard]] std::map<std::string, std::string> records_of(const std::filesystem::path& run);

/// Collects the handover of a run with a folder, which is not in execute(). Throws OutputError if
/// its records cannot be read back.
[[nodiscard]] Handover hand_over(Run& run);

/// The handover as the bytes of a State, which contain checksums.
[[nodiscard]] std::string handover_bytes(Handover handover);
/// The inverse. Throws Error if the bytes are damaged, or name a file that is not such a record.
[[nodiscard]] Handover parse_handover(std::string_view bytes);

}  // namespace rubato
