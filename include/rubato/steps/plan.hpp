#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/trace.hpp>
#include <rubato/steps/walk.hpp>

namespace rubato {

/// An epoch of a trace. With Remainder::drop it is the longest run of steps whose batch sizes sum
/// to at most floor(dataset size / minibatch size) x minibatch size samples. With Remainder::carry
/// it is the steps that begin in it; there are none if one step spans the whole epoch.
struct EpochPlan {
  EpochIndex index;
  /// The steps are consecutive.
  std::vector<StepPlan> steps{};
  /// False for the last epoch of a trace that ended before the epoch was full.
  bool complete = true;

  /// The step after the epoch; used if the epoch has no steps.
  StepIndex end{};

  [[nodiscard]] StepIndex first_step() const { return steps.empty() ? end : steps.front().index; }
  [[nodiscard]] StepIndex end_step() const {
    return steps.empty() ? end : StepIndex{steps.back().index.value() + 1};
  }
  [[nodiscard]] std::int64_t minibatches() const {
    return steps.empty() ? 0 : steps.back().first_minibatch.value() + steps.back().minibatches;
  }
};

/// Samples of the epoch that the steps of the trace show, without those that its last step takes
/// from the next epoch.
[[nodiscard]] std::int64_t samples_of(const EpochPlan& epoch, const PlanOptions& options);

/// The epoch as it is announced to training.
[[nodiscard]] EpochStart start_of(const EpochPlan& epoch, const PlanOptions& options);

/// Divides a trace into consecutive epochs, which are known before a training that follows a trace.
///
/// With Remainder::drop an epoch ends when the next step does not fit into it; a step never
/// straddles two epochs, and the remaining samples are dropped. With Remainder::carry it ends with
/// its last sample, in the middle of a step if necessary, and nothing is dropped. If the trace ends
/// in the middle of an epoch, that part is an (incomplete) epoch under TraceEnd::stop, and no epoch
/// under TraceEnd::error.
class Planner {
 public:
  /// Throws Error, naming the place in the trace, if the data set holds less than one minibatch, a
  /// count is out of range, a batch size is not a multiple of the minibatch size, or a step is
  /// larger than an epoch that it must fit into. All rows of the trace are checked here, before
  /// anything is trained.
  Planner(Trace trace, PlanOptions options);

  /// The next epoch; empty if the trace holds no further one.
  [[nodiscard]] std::optional<EpochPlan> next();

  /// Makes the epoch that begins with `step` the next one, as if those before it had been planned;
  /// a step that began earlier has already used `samples` of it. Requires values of at least 0.
  void go_to(EpochIndex epoch, StepIndex step, std::int64_t samples = 0);
  [[nodiscard]] StepIndex next_step() const { return walk_.step(); }

  [[nodiscard]] const Trace& trace() const { return *source_->trace(); }
  [[nodiscard]] const PlanOptions& options() const { return walk_.planner().options(); }
  /// StepPlanner::minibatches_per_epoch().
  [[nodiscard]] std::int64_t minibatches_per_epoch() const {
    return walk_.planner().minibatches_per_epoch();
  }

 private:
  // The source is shared by all copies because it never changes.
  std::shared_ptr<TraceSource> source_;
  Walk walk_;
};

/// The length of the trace in epochs and steps, without what follows its last row.
struct TraceExtent {
  /// Complete epochs.
  std::int64_t epochs = 0;
  /// Steps after the last complete epoch, and the samples of their batches.
  std::int64_t further_steps = 0;
  std::int64_t further_samples = 0;
};

/// The extent of the trace of `planner`, independent of the planner's position.
[[nodiscard]] TraceExtent extent_of(const Planner& planner);

/// Throws Error if the trace of `planner` holds fewer than `epochs` complete epochs and its end is
/// TraceEnd::error; the message says how many it holds and what would be accepted.
void require_epochs(const Planner& planner, std::int64_t epochs);

}  // namespace rubato
