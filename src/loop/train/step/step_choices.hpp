#pragma once

// Decides how a step is computed, from the options and the rule, and how much memory that needs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "loop/train/checks/training_memory.hpp"
#include "step_engine.hpp"

namespace rubato {

/// Returns the options of group 0, which has the parameters that no group takes, and of the groups.
[[nodiscard]] std::vector<GroupOptions> group_options(std::span<const ParameterGroup> groups);

/// Returns whether the norms of minibatches are needed.
[[nodiscard]] bool takes_norms(const Rule& rule, const TrainOptions& options);

/// Returns the largest number of minibatches that an evaluator computes in one pass: 1 if each
/// result is needed separately.
[[nodiscard]] std::int64_t most_at_once(const Objective& objective, const Rule& rule,
                                        const TrainOptions& options);

/// Returns the name of a reducer, or "auto". If an evaluator sums several minibatches itself, the
/// tree has little left to do, and other reducers would need each minibatch separately.
[[nodiscard]] std::string_view chosen_reducer(const TrainOptions& options, std::int64_t at_once);

/// The sizes of a leaf of the sum.
struct LeafSize {
  std::size_t parameters = 0;
  std::size_t buffers = 0;
  std::size_t value_bytes = 0;
};
/// Returns the sizes for require_training_memory().
[[nodiscard]] TrainingSizes training_sizes(const LeafSize& leaf, const StepEngineParts& parts,
                                           const TrainOptions& options, const StepRange& steps);

}  // namespace rubato
