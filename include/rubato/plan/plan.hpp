#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rubato/core/choice.hpp>
#include <rubato/core/index.hpp>
#include <rubato/plan/assignment.hpp>
#include <rubato/plan/shuffle.hpp>
#include <rubato/plan/step_plan.hpp>
#include <rubato/trace/trace.hpp>

namespace rubato {

/// What becomes of a step that does not fit into what is left of its epoch.
enum class Remainder {
  drop,   ///< it begins the next epoch, and the samples left over are not trained in this one
  carry,  ///< it takes what is left, and the rest of its samples from the next epoch
};
inline constexpr std::array<Choice<Remainder>, 2> kRemainders{
    {{Remainder::drop, "drop"}, {Remainder::carry, "carry"}}};

/// What a plan is made for.
struct PlanOptions {
  /// Samples in the data set, at most kMaxDatasetSize.
  std::int64_t dataset_size = 0;
  /// Samples in a minibatch.
  std::int64_t minibatch_size = 32;
  /// Cores at the steps for which the trace does not say, at most kMaxCores.
  std::int64_t cores = 1;
  Remainder remainder = Remainder::drop;
  /// Epochs after which nothing is trained: with Remainder::carry the step that would go on behind
  /// them ends with their last sample. 0 is no end.
  std::int64_t epochs = 0;
};

/// Where in training a step begins.
struct StepPlace {
  StepIndex step;
  EpochIndex epoch;
  /// Samples of the epoch that the steps before it have taken.
  std::int64_t samples = 0;
};

/// Plans one step after the other, as they are asked for.
class StepPlanner {
 public:
  /// Throws Error when the data set holds less than one minibatch or a count is out of its range.
  explicit StepPlanner(const PlanOptions& options);

  /// What is wrong with a step that is asked for, and what would be accepted: a batch size that is
  /// no multiple of the minibatch size or, with Remainder::drop, larger than an epoch; a count out
  /// of its range. Empty for a good one.
  [[nodiscard]] std::string objection(const TraceStep& asked) const;
  /// The plan of a step to which there is no objection; empty where it does not fit into what is
  /// left of the epoch, which it always does with Remainder::carry. PlanOptions::epochs shortens
  /// it.
  [[nodiscard]] std::optional<StepPlan> plan(const StepPlace& place, const TraceStep& asked) const;
  /// Samples from the place on until PlanOptions::epochs are over, which shorten a step; empty with
  /// Remainder::drop, where there are more than any step has, and behind the epochs.
  [[nodiscard]] std::optional<std::int64_t> samples_left(const StepPlace& place) const;
  /// Where the step after it begins: with Remainder::drop in the same epoch.
  [[nodiscard]] StepPlace after(StepPlace place, const StepPlan& step) const;

  [[nodiscard]] const PlanOptions& options() const { return options_; }
  [[nodiscard]] bool carries() const { return options_.remainder == Remainder::carry; }
  /// Whole minibatches in an epoch: floor(dataset size / minibatch size).
  [[nodiscard]] std::int64_t minibatches_per_epoch() const {
    return options_.dataset_size / options_.minibatch_size;
  }
  /// Samples in an epoch: all with Remainder::carry, else those of the whole minibatches at most.
  [[nodiscard]] std::int64_t samples_per_epoch() const {
    return carries() ? options_.dataset_size : minibatches_per_epoch() * options_.minibatch_size;
  }

 private:
  PlanOptions options_;
};

/// What is known of an epoch when it begins.
struct EpochStart {
  EpochIndex index;
  StepIndex first_step;
  /// That its steps will show; those of a full epoch where the steps are not known beforehand.
  std::int64_t samples = 0;
  /// Steps of it, where all are known beforehand: a trace's.
  std::optional<std::int64_t> steps{};
};

/// An epoch of a trace. With Remainder::drop it is the longest run of steps whose batch sizes sum
/// to at most floor(dataset size / minibatch size) x minibatch size samples; with Remainder::carry
/// it is the steps that begin in it, none where one step goes on from before it until behind it.
struct EpochPlan {
  EpochIndex index;
  /// Consecutive.
  std::vector<StepPlan> steps{};
  /// False for the last epoch of a trace that ended before the epoch was full.
  bool complete = true;

  /// The step behind it, which is the first one where it has none.
  StepIndex end{};

  [[nodiscard]] StepIndex first_step() const { return steps.empty() ? end : steps.front().index; }
  [[nodiscard]] StepIndex end_step() const {
    return steps.empty() ? end : StepIndex{steps.back().index.value() + 1};
  }
  [[nodiscard]] std::int64_t minibatches() const {
    return steps.empty() ? 0 : steps.back().first_minibatch.value() + steps.back().minibatches;
  }
};

/// Samples of the epoch that the steps of the trace show; those that its last step takes from the
/// next epoch are that one's.
[[nodiscard]] std::int64_t samples_of(const EpochPlan& epoch, const PlanOptions& options);

/// The same as training hears it.
[[nodiscard]] EpochStart start_of(const EpochPlan& epoch, const PlanOptions& options);

/// Cuts a trace into epochs, one after the other: what is known beforehand of a training that
/// follows a trace.
///
/// With Remainder::drop an epoch ends where the next step would not fit into it any more; a step
/// never straddles two epochs, and the samples left over are dropped. With Remainder::carry it ends
/// with its last sample, in the middle of a step if need be, and nothing is dropped. Of a trace
/// that ends in the middle of an epoch, that last part is an (incomplete) epoch under
/// TraceEnd::stop and none under TraceEnd::error.
class Planner {
 public:
  /// Throws Error, naming the place in the trace, when the data set holds less than one minibatch,
  /// a count is out of its range, a batch size is no multiple of the minibatch size, or a step is
  /// larger than an epoch that it has to fit into. All rows of the trace are checked here, before
  /// anything is trained.
  Planner(Trace trace, PlanOptions options);

  /// The next epoch, or nothing when the trace holds no further one.
  [[nodiscard]] std::optional<EpochPlan> next();

  /// Makes the epoch that begins with `step` the next, as if those before it had been planned;
  /// `samples` of it have been shown by a step that began before. Requires values of at least 0.
  void go_to(EpochIndex epoch, StepIndex step, std::int64_t samples = 0);
  [[nodiscard]] StepIndex next_step() const { return place_.step; }

  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] const PlanOptions& options() const { return steps_.options(); }
  /// StepPlanner::minibatches_per_epoch().
  [[nodiscard]] std::int64_t minibatches_per_epoch() const {
    return steps_.minibatches_per_epoch();
  }
  /// Minibatches in the largest step of the trace, at least 1.
  [[nodiscard]] std::int64_t largest_step() const;

 private:
  Trace trace_;
  StepPlanner steps_;
  EpochIndex next_epoch_;
  // Of the next step: in the next epoch or, where one goes on from before it, behind it.
  StepPlace place_;
};

/// How far the rows of a trace last, without what follows the last one.
struct TraceExtent {
  /// Complete epochs.
  std::int64_t epochs = 0;
  /// Steps after the last complete epoch, and the samples of their batches.
  std::int64_t further_steps = 0;
  std::int64_t further_samples = 0;
};

/// How far the trace of `planner` lasts, wherever the planner stands.
[[nodiscard]] TraceExtent extent_of(const Planner& planner);

/// Throws Error when the trace of `planner` holds fewer than `epochs` complete epochs and its end
/// is TraceEnd::error; says how many it holds and what would be accepted.
void require_epochs(const Planner& planner, std::int64_t epochs);

}  // namespace rubato
