#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "run_result.hpp"
#include "runs/experiment/design/experiment_plan.hpp"

namespace rubato {

/// The first steps of a run, which are those of another run of the experiment to the bit.
struct SharedPrefix {
  /// Index of the run that trains them, which comes before those that share them.
  std::size_t trained_by = 0;
  std::int64_t steps = 0;
};

/// For each run, the prefix that it has in common with one before it; empty if it trains all of its
/// steps itself.
///
/// Two runs share a prefix if they differ in their rules alone, and these are built-in ones whose
/// rates depend on the batch alone, without a state or norms (constant, linear, root), and are
/// equal at the reference batch: then all steps before the first one of another batch are equal.
/// The trace must say all batches in advance, and the prefix must be at least a tenth of the run.
/// Runs with a limit other than their epochs, with an interval of checkpoints of their own or with
/// records for TensorBoard, and forks of other runs, share nothing.
[[nodiscard]] std::vector<std::optional<SharedPrefix>> shared_prefixes(
    std::span<const PlannedRun> runs, DataFacts& facts);

/// Makes a run keep the state after that step, in a checkpoint: it writes one every so many steps,
/// and keeps all of them, which are at most ten.
void keep_prefix(RunConfiguration& configuration, std::int64_t steps);

}  // namespace rubato
