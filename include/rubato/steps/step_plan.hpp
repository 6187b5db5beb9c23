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

/// The distribution of a step's minibatches over its cores.
enum class Assignment {
  contiguous,  ///< each core one run, sizes differing by at most one, longer runs first
  strided,     ///< core r takes the step's minibatches r, r + cores, r + 2 cores, ...
};
inline constexpr std::array<Choice<Assignment>, 2> kAssignments{
    {{Assignment::contiguous, "contiguous"}, {Assignment::strided, "strided"}}};

/// The minibatches first, first + stride, ..., first + (count - 1) stride: one core's share of a
/// step. A count of 0 is an idle core.
struct MinibatchRun {
  MinibatchIndex first;
  std::int64_t count = 0;
  std::int64_t stride = 1;

  [[nodiscard]] constexpr MinibatchIndex operator[](std::int64_t i) const {
    return MinibatchIndex{first.value() + i * stride};
  }
  friend bool operator==(const MinibatchRun&, const MinibatchRun&) = default;
};

/// Core `core`'s share of a step of `minibatches` minibatches, beginning with `first`, on `cores`
/// cores. The shares of all cores are disjoint and cover the step. Requires 0 <= core < cores and
/// minibatches >= 1.
[[nodiscard]] MinibatchRun share_of_core(MinibatchIndex first, std::int64_t minibatches,
                                         CoreRank core, std::int64_t cores, Assignment assignment);

/// The number of cores that have work in such a step: cores 0, 1, ..., busy - 1, under either
/// assignment. Requires minibatches >= 1 and cores >= 1.
[[nodiscard]] std::int64_t busy_cores(std::int64_t minibatches, std::int64_t cores);

/// The number of minibatches of `samples` samples; the last may have fewer than the others.
[[nodiscard]] constexpr std::int64_t minibatches_of(std::int64_t samples,
                                                    std::int64_t minibatch_size) {
  return (samples + minibatch_size - 1) / minibatch_size;
}

/// A minibatch's core, and its index among the minibatches of that core in the step, from 0.
struct MinibatchPlace {
  CoreRank core;
  std::int64_t substep = 0;

  friend bool operator==(const MinibatchPlace&, const MinibatchPlace&) = default;
};

/// One update of the shared parameters: its minibatches within the epoch, and its cores. With
/// Remainder::carry they may extend beyond the epoch in which the step begins; counting continues
/// there.
struct StepPlan {
  StepIndex index;
  std::int64_t batch_size = 0;
  std::int64_t cores = 0;
  /// Cores of each of several hosts, as in TraceStep::host_cores.
  std::vector<std::int64_t> host_cores{};
  MinibatchIndex first_minibatch;
  /// minibatches_of(batch_size); the last has fewer samples only if training ends with it
  /// (Remainder::carry).
  std::int64_t minibatches = 0;
  /// Samples of the epoch before its minibatch 0, which filled the last minibatch of the epoch
  /// before. From 0 to minibatch size - 1; 0 with Remainder::drop.
  std::int64_t shift = 0;

  /// Samples of the epoch before the step.
  [[nodiscard]] std::int64_t first_sample(std::int64_t minibatch_size) const {
    return shift + first_minibatch.value() * minibatch_size;
  }
  /// batch_size in minibatches, with a fraction for a last one that is not full: the divisor that
  /// turns a sum over minibatches into a mean over samples.
  [[nodiscard]] double size_in_minibatches(std::int64_t minibatch_size) const {
    return static_cast<double>(batch_size) / static_cast<double>(minibatch_size);
  }

  /// Core `core`'s share of the step.
  [[nodiscard]] MinibatchRun share_of(CoreRank core, Assignment assignment) const {
    return share_of_core(first_minibatch, minibatches, core, cores, assignment);
  }
  /// The place at which share_of() has the minibatch, which must be one of the step's.
  [[nodiscard]] MinibatchPlace place_of(MinibatchIndex minibatch, Assignment assignment) const;
};

/// Facts about an epoch when it begins.
struct EpochStart {
  EpochIndex index;
  StepIndex first_step;
  /// Samples that its steps will show; those of a full epoch if the steps are not known beforehand.
  std::int64_t samples = 0;
  /// Steps of the epoch, if all are known beforehand, as in a trace.
  std::optional<std::int64_t> steps{};
};

/// The trained part of an epoch: 5 of 48 steps.
struct EpochPart {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// Steps of the whole epoch; if the trace ended before it, or they are not known beforehand, the
  /// number there would be if the last step were repeated.
  std::int64_t of_steps = 0;
};

/// The treatment of a step that does not fit into the rest of its epoch.
enum class Remainder {
  drop,   ///< it begins the next epoch, and the remaining samples of this one are not trained
  carry,  ///< it takes the remaining samples, and the rest of its own from the next epoch
};
inline constexpr std::array<Choice<Remainder>, 2> kRemainders{
    {{Remainder::drop, "drop"}, {Remainder::carry, "carry"}}};

/// The parameters of a plan.
struct PlanOptions {
  /// Samples in the data set, at most kMaxDatasetSize.
  std::int64_t dataset_size = 0;
  /// Samples in a minibatch.
  std::int64_t minibatch_size = 32;
  /// Cores of steps for which the trace gives none, at most kMaxCores.
  std::int64_t cores = 1;
  Remainder remainder = Remainder::drop;
  /// The number of epochs; with Remainder::carry a step that would extend beyond the last ends with
  /// its last sample. 0 means no end.
  std::int64_t epochs = 0;
};

/// The place in training at which a step begins.
struct StepPlace {
  StepIndex step;
  EpochIndex epoch;
  /// Samples of the epoch that earlier steps have taken.
  std::int64_t samples = 0;
};

/// Plans steps one by one, as they are requested.
class StepPlanner {
 public:
  /// Throws Error if the data set holds less than one minibatch or a count is out of range.
  explicit StepPlanner(const PlanOptions& options);

  /// The error in a requested step, and what would be accepted: a batch size that is not a multiple
  /// of the minibatch size or, with Remainder::drop, larger than an epoch; a count out of range.
  /// Empty for a valid step.
  [[nodiscard]] std::string objection(const TraceStep& asked) const;
  /// The plan of a step without objection; empty if it does not fit into the rest of the epoch,
  /// which cannot happen with Remainder::carry. PlanOptions::epochs shortens it.
  [[nodiscard]] std::optional<StepPlan> plan(const StepPlace& place, const TraceStep& asked) const;
  /// Samples from the place until the end of all PlanOptions::epochs, which shortens a step; empty
  /// with Remainder::drop, if no step can have as many, and after the epochs.
  [[nodiscard]] std::optional<std::int64_t> samples_left(const StepPlace& place) const;

  [[nodiscard]] const PlanOptions& options() const { return options_; }
  [[nodiscard]] bool carries() const { return options_.remainder == Remainder::carry; }
  /// Whole minibatches in an epoch: floor(dataset size / minibatch size).
  [[nodiscard]] std::int64_t minibatches_per_epoch() const {
    return options_.dataset_size / options_.minibatch_size;
  }
  /// Samples in an epoch: all with Remainder::carry, otherwise at most those of the whole
  /// minibatches.
  [[nodiscard]] std::int64_t samples_per_epoch() const {
    return carries() ? options_.dataset_size : minibatches_per_epoch() * options_.minibatch_size;
  }

 private:
  PlanOptions options_;
};

}  // namespace rubato
