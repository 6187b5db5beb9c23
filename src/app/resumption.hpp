#pragma once

#include <optional>
#include <string>

#include <rubato/report/checkpoints.hpp>
#include <rubato/report/run_folder.hpp>
#include <rubato/trace/trace.hpp>
#include <rubato/train/observer.hpp>

#include "app/train_arguments.hpp"

namespace rubato::app {

/// The text of the configuration file of a run in `folder`.
[[nodiscard]] std::string config_text(const RunConfiguration& run, const RunFolder& folder);

/// Writes the configuration, and the trace as it was read, so that the folder alone reproduces the
/// run. Returns the text of the configuration.
std::string write_origin(const RunFolder& folder, RunConfiguration run, const Trace& trace);

/// The checkpoint that the run in `folder` goes on from: the one that arguments.checkpoint names,
/// else the newest good one; stderr hears which ones are not good. Empty for a run that has come to
/// nothing yet and begins anew. Throws Error where the run cannot go on, or was trained with other
/// options; nothing in the folder has been touched then.
[[nodiscard]] std::optional<CheckpointFolder::Found> checkpoint_of(
    const RunFolder& folder, const CheckpointFolder& checkpoints, const TrainArguments& arguments);

/// Keeps what a run has come to since the checkpoint that it goes on from, where there is any:
/// newer checkpoints than the one that was named, and the results of a run that was finished. It
/// goes into a folder of the run, RUN/newer-than-step-N, which is a run of its own. Does so when
/// the state is loaded; to be added to a trainer behind those that check the state and before those
/// whose load() changes files.
class KeepNewer final : public Observer {
 public:
  /// `from` is `arguments.checkpoint` or was found instead.
  KeepNewer(const RunFolder& run, const CheckpointFolder& checkpoints,
            const std::filesystem::path& from, TrainArguments arguments);

  void load(const Training& training, const State& state) override;

  /// The folder; empty where there was nothing to keep.
  [[nodiscard]] const std::optional<std::filesystem::path>& folder() const { return kept_in_; }

 private:
  [[nodiscard]] bool is_finished_later() const;

  std::filesystem::path run_;
  std::int64_t steps_;
  std::vector<std::filesystem::path> newer_;
  TrainArguments arguments_;
  std::optional<std::filesystem::path> kept_in_;
};

}  // namespace rubato::app
