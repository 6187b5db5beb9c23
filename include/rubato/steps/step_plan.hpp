#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

/// How the minibatches of a step are given to its cores.
enum class Assignment {
  contiguous,  ///< each core one run, sizes differing by at most one, longer runs first
  strided,     ///< core r takes the step's minibatches r, r + cores, r + 2 cores, ...
};
inline constexpr std::array<Choice<Assignment>, 2> kAssignments{
    {{Assignment::contiguous, "contiguous"}, {Assignment::strided, "strided"}}};

/// The minibatches first, first + stride, ..., first + (count - 1) stride. One core's share of a
/// step; count 0 is an idle core.
struct MinibatchRun {
  MinibatchIndex first;
  std::int64_t count = 0;
  std::int64_t stride = 1;

  [[nodiscard]] constexpr MinibatchIndex operator[](std::int64_t i) const {
    return MinibatchIndex{first.value() + i * stride};
  }
  friend bool operator==(const MinibatchRun&, const MinibatchRun&) = default;
};

/// Core `core`'s share of a step of `minibatches` minibatches, the first of which is `first`, on
/// `cores` cores. The shares of all cores are disjoint and cover the step.
/// Requires 0 <= core < cores and minibatches >= 1.
[[nodiscard]] MinibatchRun share_of_core(MinibatchIndex first, std::int64_t minibatches,
                                         CoreRank core, std::int64_t cores, Assignment assignment);

/// How many cores of such a step have anything to do. They are the cores 0, 1, ..., busy - 1, under
/// either assignment. Requires minibatches >= 1 and cores >= 1.
[[nodiscard]] std::int64_t busy_cores(std::int64_t minibatches, std::int64_t cores);

/// How many minibatches so many samples are, of which the last may have fewer than the others.
[[nodiscard]] constexpr std::int64_t minibatches_of(std::int64_t samples,
                                                    std::int64_t minibatch_size) {
  return (samples + minibatch_size - 1) / minibatch_size;
}

/// One update of the shared parameters: which minibatches of the epoch, on how many cores. With
/// Remainder::carry they may go on beyond the epoch that the step begins in, and count on there.
struct StepPlan {
  StepIndex index;
  std::int64_t batch_size = 0;
  std::int64_t cores = 0;
  /// Those of each of several hosts, as TraceStep::host_cores.
  std::vector<std::int64_t> host_cores{};
  MinibatchIndex first_minibatch;
  /// minibatches_of(batch_size): the last one has fewer samples only where training ends with it
  /// (Remainder::carry).
  std::int64_t minibatches = 0;
  /// Samples of the epoch before its minibatch 0: those with which the last minibatch of the epoch
  /// before was filled. From 0 to minibatch size - 1; 0 with Remainder::drop.
  std::int64_t shift = 0;

  /// Samples of the epoch before the step.
  [[nodiscard]] std::int64_t first_sample(std::int64_t minibatch_size) const {
    return shift + first_minibatch.value() * minibatch_size;
  }
  /// batch_size in minibatches, of which the last counts for what it has: what a sum over the
  /// minibatches is divided by for a mean over the samples.
  [[nodiscard]] double size_in_minibatches(std::int64_t minibatch_size) const {
    return static_cast<double>(batch_size) / static_cast<double>(minibatch_size);
  }

  /// Core `core`'s share of the step.
  [[nodiscard]] MinibatchRun share_of(CoreRank core, Assignment assignment) const {
    return share_of_core(first_minibatch, minibatches, core, cores, assignment);
  }
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

/// How much of an epoch has been trained: 5 of 48 steps.
struct EpochPart {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// Steps of the whole epoch; where the trace ended before it, or they are not known beforehand,
  /// as many as there would be if the last were held.
  std::int64_t of_steps = 0;
};

/// What happens to a step that does not fit into the rest of its epoch.
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

}  // namespace rubato
