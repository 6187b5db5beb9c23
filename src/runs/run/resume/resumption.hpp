#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/loop/observer.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/run_folder.hpp>
#include <rubato/runs/workload.hpp>

#include "runs/config/values/trace_source.hpp"

namespace rubato {

/// The text of the configuration file of a run in `folder`.
[[nodiscard]] std::string config_text(const RunConfiguration& run, const RunFolder& folder);

/// Writes the configuration, the trace or the availability, and the workload's files as they were
/// read, so that the folder alone reproduces the run. Returns the text of the configuration.
std::string write_origin(const RunFolder& folder, RunConfiguration run, const RunSteps& steps,
                         std::span<const WorkloadFile> files);

/// Keeps the results of a run since the checkpoint that it continues from, if there are any:
/// checkpoints newer than the one that was named, and the results of a run that was finished. They
/// go into a folder of the run, RUN/newer-than-step-N, which is a run of its own. This happens when
/// the state is loaded; add it to a trainer after the observers that check the state and before
/// those that change files when they load.
class KeepNewer final : public Observer {
 public:
  struct Options {
    /// The checkpoint that the run continues from.
    std::filesystem::path from;
    /// Whether it was named by the user, not found as the newest.
    bool named = false;
    /// The configuration that it continues with, which must outlive the observer: it says where the
    /// data of the run are now, and what its names mean.
    const RunConfiguration* now = nullptr;
    /// The other files that the run depends on.
    std::span<const WorkloadFile> files{};
  };

  KeepNewer(const RunFolder& run, const CheckpointFolder& checkpoints, Options options);

  /// Saves nothing; loading moves the newer results.
  void visit_state(StateVisitor& state, const Training& training) override;

  /// The folder; empty if there was nothing to keep.
  [[nodiscard]] const std::optional<std::filesystem::path>& folder() const { return kept_in_; }

 private:
  [[nodiscard]] bool is_finished_later() const;

  std::filesystem::path run_;
  std::int64_t steps_;
  std::vector<std::filesystem::path> newer_;
  Options options_;
  std::optional<std::filesystem::path> kept_in_;
};

}  // namespace rubato
