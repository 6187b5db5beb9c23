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
#include "run_request.hpp"
#include "runs/config/values/fork_point.hpp"

namespace rubato {

/// The parts of repeating steps that whoever wants them provides.
struct ReplayParts {
  LoadWorkload load;
  /// Receives what a user should know.
  Tell tell;
  /// Called before steps of a run are repeated, which are those from `first` to `last`, counted
  /// from 1.
  std::function<void(const std::filesystem::path& run, std::int64_t first, std::int64_t last)>
      on_begin{};
  /// Called after each step that is repeated, with how many steps the run has then; the replay ends
  /// with an exception that it throws.
  std::function<void(std::int64_t steps)> on_step{};
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
  std::int64_t count = 0;
  /// The digests of steps that have one, by the number of steps with that one.
  std::map<std::int64_t, Digest> digests{};
};

/// Reads the metrics in the folder of a run. Throws Error.
[[nodiscard]] RecordedSteps recorded_steps(const std::filesystem::path& run);

/// Thrown by a step that has another digest when it is repeated.
class DigestDiffers : public Error {
 public:
  using Error::Error;
};

/// Pauses a training that repeats steps of a run after the last of them, and compares their
/// digests. on_step() throws DigestDiffers.
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
/// with the options of the run, and compared with its digests.
///
/// If `scratch` is not empty, the handover has the records of all steps up to there, and `scratch`
/// is a folder that does not exist and is used for them meanwhile; else it has none. `around` has
/// the extensions with which the run's names are read, and the threads and kernels to use. `known`
/// may be null, or is a state of the run without records that serves as another checkpoint. Changes
/// nothing in the folder of the run. Throws Error if there is no such run, if it has no such step,
/// if it is damaged, or if a repeated step has another digest.
[[nodiscard]] Handover state_after(const ForkPoint& point, const RunConfiguration& around,
                                   const std::filesystem::path& scratch, const ReplayParts& parts,
                                   const StateOfStep* known = nullptr);

/// Says where a fork begins and what is different in it, on a line for people: "runs/first after
/// step 120 (digest ...), with another rule, lr".
[[nodiscard]] std::string fork_words(const RunConfiguration& run);

/// The configuration of the run in a folder, to begin a fork with.
[[nodiscard]] RunConfiguration configuration_of_run(const std::filesystem::path& run,
                                                    const RunConfiguration& around);

/// location_of() a request that may be a fork.
[[nodiscard]] RunLocation location_to_train(const RunRequest& request, const ReplayParts& parts);

/// The location of a fork: that of its run (RunConfiguration::from) at that step, in a folder that
/// does not exist yet, or in none if the path is empty. Throws Error as state_after() does, and if
/// a fork cannot have these options.
[[nodiscard]] RunLocation location_of_fork(std::filesystem::path folder,
                                           const RunConfiguration& run, const ReplayParts& parts);

}  // namespace rubato
