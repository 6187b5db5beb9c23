#pragma once

// What a step is computed with, as its options and its rule have it, and the memory that this
// takes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "loop/train/checks/training_memory.hpp"
#include "step_engine.hpp"

namespace rubato {

/// Of group 0, which has the parameters that no group takes, and of the groups.
[[nodiscard]] std::vector<GroupOptions> group_options(std::span<const ParameterGroup> groups);

/// Whether the norms of minibatches are asked for.
[[nodiscard]] bool takes_norms(const Rule& rule, const TrainOptions& options);

/// Minibatches that an evaluator computes in one pass at most: 1 where each has to be seen by
/// itself.
[[nodiscard]] std::int64_t most_at_once(const Objective& objective, const Rule& rule,
                                        const TrainOptions& options);

/// The name of a reducer, or "auto". Where an evaluator sums several minibatches itself, the tree
/// has little left to do, and others would have each of them alone.
[[nodiscard]] std::string_view chosen_reducer(const TrainOptions& options, std::int64_t at_once);

/// What a leaf of the sum has.
struct LeafSize {
  std::size_t parameters = 0;
  std::size_t buffers = 0;
  std::size_t value_bytes = 0;
};
/// What require_training_memory() is to know of such steps.
[[nodiscard]] TrainingSizes training_sizes(const LeafSize& leaf, const StepEngineParts& parts,
                                           const TrainOptions& options, const StepRange& steps);

}  // namespace rubato
