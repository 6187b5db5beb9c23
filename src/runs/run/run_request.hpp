#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rubato/loop/records.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/config/run_option.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato {

/// The request of a user: a run, and the place where it is kept.
struct RunRequest {
  RunConfiguration run{};
  GivenOptions given{};
  /// The folder of a new run.
  std::optional<std::filesystem::path> out{};
  /// Whether `out` may exist: its run is then continued as with `resume`, but with the options of
  /// `run`.
  bool continues = false;
  /// The folder of a run to be continued, and the checkpoint to continue from; by default the
  /// newest good one.
  std::optional<std::filesystem::path> resume{};
  std::optional<std::filesystem::path> checkpoint{};

  friend bool operator==(const RunRequest&, const RunRequest&) = default;
};

/// Receives text that a user should know: one line or more, without a line break at the end.
using Report = std::function<void(const std::string& text)>;

/// Throws Error if a run is to be continued in another folder, or in none.
void require_one_folder(const RunRequest& request);

/// Throws the Error for a fork that several hosts would begin.
[[noreturn]] void refuse_fork_of_hosts();

/// Returns whether the run that a request continues (RunRequest::continues) has all of its epochs
/// and its results. Throws Error if it was trained with other options, naming them.
[[nodiscard]] bool is_complete(const RunRequest& request);

/// The location of the run: the new folder, the one to be continued, or none. `report` receives
/// which checkpoints were skipped, and that another process still works in the folder. Throws Error
/// if the location is not possible.
[[nodiscard]] RunLocation location_of(const RunRequest& request, const Report& report);

/// Throws Error when `folder` exists, or when it cannot be created because its parent is not a
/// folder or cannot be written to. Creates nothing.
void check_run_folder(const std::filesystem::path& folder);

/// Returns runs/<UTC date and time> for a run that starts at `now`, followed by -2, -3, ... if that
/// exists already.
[[nodiscard]] std::filesystem::path default_run_folder(std::chrono::system_clock::time_point now);

/// Makes the request resume what `text` names: the folder of a run, or
/// RUN/checkpoints/step-N.safetensors. Uses only the name, not the file system.
void ask_to_resume(RunRequest& request, const std::string& text);

// Warnings to a user whose run is valid, but may not be the one that they meant.

/// A warning that --cores has no effect; empty unless `steps` give the number of cores of every
/// step.
[[nodiscard]] std::optional<std::string> idle_cores(const RunSteps& steps,
                                                    const RunConfiguration& run);

/// A line for each option that has no effect, and one if OpenMP has bound the process to a CPU.
/// `redrawn` says whether progress is a line that is redrawn.
[[nodiscard]] std::vector<std::string> idle_arguments(const RunRequest& request,
                                                      const RunSteps& steps, bool redrawn);

/// A warning that the rule changes the given --lr although every step of the trace has the same
/// batch size; empty if it does not, if --ref-batch was given, too, or if the rule is the user's
/// own.
[[nodiscard]] std::optional<std::string> scaled_rate(const RunRequest& request,
                                                     const RunSteps& steps);

/// A line that says by how much the accuracy misses --target-accuracy; empty if it does not.
[[nodiscard]] std::optional<std::string> missed_target(const RunConfiguration& run,
                                                       const TrainResult& result);

/// A line that says when a --schedule with an end had come to it, and with which factor; empty if
/// no step came after it. `samples` are those of an epoch.
[[nodiscard]] std::optional<std::string> ended_schedule(const RunConfiguration& run,
                                                        const TrainResult& result,
                                                        std::int64_t samples);

/// A line on --patience, --keep-best and a --schedule that go by an accuracy which the test of the
/// epoch does not have: no later one has it either.
[[nodiscard]] std::optional<std::string> unwatchable(const RunConfiguration& run,
                                                     const EpochRecord& epoch);

}  // namespace rubato
