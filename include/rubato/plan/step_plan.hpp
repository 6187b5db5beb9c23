#pragma once

#include <cstdint>
#include <vector>

#include <rubato/core/index.hpp>
#include <rubato/plan/assignment.hpp>

namespace rubato {

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

}  // namespace rubato
