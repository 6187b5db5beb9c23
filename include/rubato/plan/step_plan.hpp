#pragma once

#include <cstdint>
#include <vector>

#include <rubato/core/index.hpp>
#include <rubato/plan/assignment.hpp>

namespace rubato {

/// One update of the shared parameters: which minibatches of the epoch, on how many cores. With
/// Remainder::carry they may go on beyond the epoch that the step begins in, and count on there.
struct StepPlan {
  StepIndex index;
  std::int64_t batch_size = 0;
  std::int64_t cores = 0;
  /// Those of each of several hosts, as TraceStep::host_cores.
  std::vector<std::int64_t> host_cores{};
  MinibatchIndex first_minibatch;
  /// batch_size / minibatch size.
  std::int64_t minibatches = 0;
  /// Samples of the epoch before its minibatch 0: those with which the last minibatch of the epoch
  /// before was filled. From 0 to minibatch size - 1; 0 with Remainder::drop.
  std::int64_t shift = 0;

  /// Core `core`'s share of the step.
  [[nodiscard]] MinibatchRun share_of(CoreRank core, Assignment assignment) const {
    return share_of_core(first_minibatch, minibatches, core, cores, assignment);
  }
};

}  // namespace rubato
