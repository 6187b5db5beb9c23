#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <rubato/base/digest.hpp>
#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "resumption.hpp"
#include "run_history.hpp"
#include "run_request.hpp"
#include "runs/config/values/fork_point.hpp"

namespace rubato {

/// The parts of repeating steps that whoever wants them provides.
struct ReplayParts {
  LoadWorkload load;
  /// Receives what a user should know.
  Report report;
  /// Called before steps of a run are repeated, which are those from `first` to `last`, counted
  /// from 1.
  std::function<void(const std::filesystem::path& run, std::int64_t first, std::int64_t last)>
      on_begin{};
  /// Called after each step that is repeated, with how many steps the run has then; the replay ends
  /// with an exception that it throws.
  std::function<void(std::int64_t steps)> on_step{};
  /// False to take states as they are although their steps have other digests, for a comparison
  /// that says where a state differs.
  bool checks_states = true;
};

/// Calls ReplayParts::on_step after each step.
class StepListener final : public Observer {
 public:
  /// `parts` must outlive it.
  explicit StepListener(const ReplayParts& parts) : parts_(parts) {}
  void between_steps(Training& training) override {
    if (parts_.on_step) parts_.on_step(training.result().steps);
  }

 private:
  const ReplayParts& parts_;
};

/// The steps of a run, as its metrics tell of them.
struct RecordedSteps {
  /// The numbers that a repeated step has again.
  struct Numbers {
    std::int64_t batch_size = 0;
    double learning_rate = 0;
    /// NaN if it was not finite.
    double loss = 0;
  };
  std::int64_t count = 0;
  /// By the number of steps with that one.
  std::map<std::int64_t, Numbers> numbers{};
  /// The digests of steps that have one.
  std::map<std::int64_t, Digest> digests{};
};

/// Reads the metrics in the folder of a run. Throws Error.
[[nodiscard]] RecordedSteps recorded_steps(const std::filesystem::path& run);

/// Thrown by a step that is another one when it is repeated, and for a state that is not that of
/// its step.
class StepDiffers : public Error {
 public:
  using Error::Error;
};

/// Throws StepDiffers if the step of a state, which is that of a checkpoint's file, has another
/// digest.
void require_state_of_step(const std::filesystem::path& file, const State& state, std::int64_t step,
                           const RecordedSteps& steps);

/// Pauses a training that repeats steps of a run after the last of them, and compares their
/// batches, rates, losses and digests: the losses of a run without --exact may differ. on_step()
/// throws StepDiffers.
class RepeatedSteps final : public Observer {
 public:
  /// `run` is the folder of the run; the training is paused when it has `last` steps.
  RepeatedSteps(std::filesystem::path run, RecordedSteps recorded, std::int64_t last)
      : run_(std::move(run)), recorded_(std::move(recorded)), last_(last) {}

  void on_step(Training& training, const StepRecord& step) override;
  void between_steps(Training& training) override;

 private:
  std::filesystem::path run_;
  RecordedSteps recorded_;
  std::int64_t last_;
};

/// The state of a run after so many of its steps.
struct StateOfStep {
  std::int64_t step = 0;
  State state{};
};

/// The state of a run after any of its steps: that of a checkpoint, if there is one of this step.
/// Otherwise the steps from the nearest checkpoint before it, or from the beginning, are repeated
/// with the options that they had (RunHistory), and compared with the run's records
/// (RepeatedSteps).
///
/// If `scratch` is not empty, the handover has the records of all steps up to there, and `scratch`
/// is a folder that does not exist and is used for them meanwhile; else it has none. `around` has
/// the extensions with which the run's names are read, and the threads and kernels to use. `known`
/// may be null, or is a state of the run without records that serves as another checkpoint if
/// `scratch` is empty. Changes nothing in the folder of the run. Throws Error if there is no such
/// run, if it has no such step or was trained on other data, if it is damaged, or if its steps
/// cannot be repeated without a run that is gone; StepDiffers.
[[nodiscard]] Handover state_after(const ForkPoint& point, const RunConfiguration& around,
                                   const std::filesystem::path& scratch, const ReplayParts& parts,
                                   const StateOfStep* known = nullptr);

/// Says where a fork begins and what is different in it, on a line for people: "runs/first after
/// step 120 (digest ...), with another rule, lr".
[[nodiscard]] std::string fork_words(const RunConfiguration& run);

/// location_of() a request that may be a fork.
[[nodiscard]] RunLocation location_to_train(const RunRequest& request, const ReplayParts& parts);

/// The location of a fork: that of its run (RunConfiguration::from) at that step, in a folder that
/// does not exist yet, or in none if the path is empty. Throws Error as state_after() does, and if
/// a fork cannot have these options.
[[nodiscard]] RunLocation location_of_fork(std::filesystem::path folder,
                                           const RunConfiguration& run, const ReplayParts& parts);

}  // namespace rubato
