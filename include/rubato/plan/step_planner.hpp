#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <rubato/core/choice.hpp>
#include <rubato/core/index.hpp>
#include <rubato/plan/step_plan.hpp>
#include <rubato/trace/trace.hpp>

namespace rubato {

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
