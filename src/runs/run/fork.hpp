#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include <rubato/base/state.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "resumption.hpp"
#include "run_history.hpp"
#include "run_request.hpp"

namespace rubato {

/// The parts of repeating steps that whoever wants them provides.
struct ReplayParts {
  LoadWorkload load{};
  /// Receives what a user should know.
  Report report{};
  /// Called before steps of a run are repeated, which are those from `first` to `last`, counted
  /// from 1.
  std::function<void(const std::filesystem::path& run, std::int64_t first, std::int64_t last)>
      on_begin{};
  /// Called after each step that is repeated, with how many steps the run has then; the replay ends
  /// with an exception that it throws.
  std::function<void(std::int64_t steps)> on_step{};
  /// False to take metrics and states as they are although they have other checksums, for a
  /// comparison that says where they differ. Steps that are repeated are compared all the same.
  bool checks_files = true;
};

/// Repeats steps of a run in a training of its options, which is paused when it has `end` steps.
/// `segment` is the one of `history` that has them. Throws StepDiffers at the first step that is
/// not the recorded one (RunHistory::difference_of()), and if the weights in the end are not those
/// of the summary.
void repeat_steps(Run& run, const RunHistory& history, const RunSegment& segment, std::int64_t end,
                  const ReplayParts& parts);

/// The state of a run after so many of its steps.
struct StateOfStep {
  std::int64_t step = 0;
  State state{};
};

/// The state of a run after any of its steps: that of a checkpoint, if there is one of this step.
/// Otherwise the steps from the nearest checkpoint before it, or from the beginning, are repeated
/// with the options that they had. What `history`, which is RunHistory::of() the run, knows is
/// compared: the metrics, the state of the checkpoint, each repeated step and, if the run ended
/// with this step, the weights. The data are compared with those of any checkpoint, of the first
/// step if there is none, or by the training that continues from the state.
///
/// If `scratch` is not empty, the handover has the records of all steps up to there, and `scratch`
/// is a folder that does not exist and is used for them meanwhile; else it has none. `known` may be
/// null, or is a state of the run without records that serves as another checkpoint if `scratch` is
/// empty. Changes nothing in the folder of the run. Throws Error if it has no such step, was
/// trained on other data, or has changed, or if its steps need a run that is gone; StepDiffers.
[[nodiscard]] Handover state_after(const RunHistory& history, std::int64_t step,
                                   const std::filesystem::path& scratch, const ReplayParts& parts,
                                   const StateOfStep* known = nullptr);

/// location_of() a request that may be a fork.
[[nodiscard]] RunLocation location_to_train(const RunRequest& request, const ReplayParts& parts);

/// The location of a fork: that of its run (RunConfiguration::from) at that step, in a folder that
/// does not exist yet, or in none if the path is empty. Its note says where it begins, with the
/// digest, and what is different in it. Throws Error as state_after() does, and if a fork cannot
/// have these options.
[[nodiscard]] RunLocation location_of_fork(std::filesystem::path folder,
                                           const RunConfiguration& run, const ReplayParts& parts);

}  // namespace rubato
