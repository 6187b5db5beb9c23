#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rubato/core/index.hpp>
#include <rubato/plan/assignment.hpp>
#include <rubato/plan/shuffle.hpp>
#include <rubato/trace/trace.hpp>

namespace rubato {

/// What a plan is made for.
struct PlanOptions {
  /// Samples in the data set, at most kMaxDatasetSize.
  std::int64_t dataset_size = 0;
  /// Samples in a minibatch.
  std::int64_t minibatch_size = 32;
  /// Cores at the steps for which the trace does not say, at most kMaxCores.
  std::int64_t cores = 1;
};

/// One update of the shared parameters: which minibatches of the epoch, on how many cores.
struct StepPlan {
  StepIndex index;
  std::int64_t batch_size = 0;
  std::int64_t cores = 0;
  MinibatchIndex first_minibatch;
  /// batch_size / minibatch size.
  std::int64_t minibatches = 0;

  /// Core `core`'s share of the step.
  [[nodiscard]] MinibatchRun share_of(CoreRank core, Assignment assignment) const {
    return share_of_core(first_minibatch, minibatches, core, cores, assignment);
  }
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
  /// no multiple of the minibatch size or larger than an epoch, a count out of its range. Empty for
  /// a good one.
  [[nodiscard]] std::string objection(const TraceStep& asked) const;
  /// The plan of a step to which there is no objection; empty where it does not fit into what is
  /// left of the epoch.
  [[nodiscard]] std::optional<StepPlan> plan(const StepPlace& place, const TraceStep& asked) const;
  /// Where the step after it begins, in the same epoch.
  [[nodiscard]] static StepPlace after(StepPlace place, const StepPlan& step) {
    ++place.step;
    place.samples += step.batch_size;
    return place;
  }

  [[nodiscard]] const PlanOptions& options() const { return options_; }
  /// Minibatches in an epoch at most: floor(dataset size / minibatch size).
  [[nodiscard]] std::int64_t minibatches_per_epoch() const {
    return options_.dataset_size / options_.minibatch_size;
  }
  /// Samples in an epoch at most.
  [[nodiscard]] std::int64_t samples_per_epoch() const {
    return minibatches_per_epoch() * options_.minibatch_size;
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

/// An epoch: the longest run of trace steps whose batch sizes sum to at most
/// floor(dataset size / minibatch size) x minibatch size samples.
struct EpochPlan {
  EpochIndex index;
  /// Consecutive, at least one.
  std::vector<StepPlan> steps{};
  /// False for the last epoch of a trace that ended before the epoch was full.
  bool complete = true;

  [[nodiscard]] StepIndex first_step() const { return steps.front().index; }
  [[nodiscard]] StepIndex end_step() const { return StepIndex{steps.back().index.value() + 1}; }
  [[nodiscard]] std::int64_t minibatches() const {
    return steps.back().first_minibatch.value() + steps.back().minibatches;
  }
};

/// The same as training hears it.
[[nodiscard]] EpochStart start_of(const EpochPlan& epoch);

/// Cuts a trace into epochs, one after the other: what is known beforehand of a training that
/// follows a trace.
///
/// An epoch ends where the next step would not fit into it any more; a step never straddles two
/// epochs, and the samples left over are dropped. Of a trace that ends in the middle of an epoch,
/// that last part is an (incomplete) epoch under TraceEnd::stop and none under TraceEnd::error.
class Planner {
 public:
  /// Throws Error, naming the place in the trace, when the data set holds less than one minibatch,
  /// a count is out of its range, a batch size is no multiple of the minibatch size, or a step is
  /// larger than an epoch. All rows of the trace are checked here, before anything is trained.
  Planner(Trace trace, PlanOptions options);

  /// The next epoch, or nothing when the trace holds no further one.
  [[nodiscard]] std::optional<EpochPlan> next();

  /// Makes the epoch that begins with `step` the next, as if those before it had been planned.
  /// Requires values of at least 0.
  void go_to(EpochIndex epoch, StepIndex step);
  [[nodiscard]] StepIndex next_step() const { return next_step_; }

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
  StepIndex next_step_;
  EpochIndex next_epoch_;
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
