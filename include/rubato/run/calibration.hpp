#pragma once

#include <cstdint>

#include <rubato/config/run_configuration.hpp>
#include <rubato/run/workload.hpp>

namespace rubato {

/// How to measure the steps of a workload.
struct CalibrationOptions {
  /// Cores at work at once, each on a thread of its own; at least 1. One is a core that has the
  /// machine to itself, which is what the cores of a cluster have.
  int threads = 1;
  /// Minibatches of each core in a step, at least 1.
  std::int64_t substeps = 4;
  /// Seconds that it takes at most, above 0; but for kWarmUpSteps and kFewestSteps, however long
  /// those take, and for tests between epochs. It takes less where the median is known before.
  double seconds = 1.5;

  static constexpr std::int64_t kWarmUpSteps = 2;
  static constexpr std::int64_t kFewestSteps = 5;
};

/// The durations of a workload's steps on this machine. A step of n minibatches on each core takes
/// n substep_seconds + update_seconds.
struct Calibration {
  /// Of a minibatch on its core: gathering its samples, forward, backward, and adding its gradient
  /// to the others.
  double substep_seconds = 0;
  /// All else of a step: its plan, the rule, the optimizer, buffers, observers, starting the
  /// threads and waiting for the last.
  double update_seconds = 0;
  /// Of the gradient, as cores would send it.
  std::int64_t gradient_bytes = 0;

  // What it was measured with.

  std::int64_t minibatch_size = 1;
  int threads = 1;
  std::int64_t substeps = 1;
  /// Steps measured, and the distance between the quartiles of their seconds, relative to the
  /// median: 0.02 on a machine that does nothing else, 0.2 on one that does.
  std::int64_t steps = 0;
  double spread = 0;
};

/// Trains the workload as the configuration says, on a trainer of its own at a negligible learning
/// rate, and measures the steps: medians, so that what disturbs fewer than half of them counts for
/// nothing, and what disturbs all of them, as it does the run that is to be predicted, counts in
/// full. Faults, stragglers and the schedule are left out. No other trainer may train meanwhile.
///
/// Leaves nothing behind: what is trained afterwards comes to the same bits. Throws Error for
/// options out of their range, and as Trainer does.
[[nodiscard]] Calibration calibrate(const Workload& workload, const RunConfiguration& configuration,
                                    const CalibrationOptions& options = {});

}  // namespace rubato
