#pragma once

#include <cstdint>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/cluster_model.hpp>

namespace rubato {

/// How to measure the steps of a workload.
struct CalibrationOptions {
  /// Cores at work at once, each on a thread of its own; at least 1. One is a core that has the
  /// machine to itself, which is what the cores of a cluster have.
  int threads = 1;
  /// Threads that have no core in a step, and take part in its update; at least 0.
  int idle_threads = 0;
  /// Cores in a step for each of these threads, which take them one after the other; at least 1.
  std::int64_t cores_per_thread = 1;
  /// Minibatches of each core in a step, at least 1.
  std::int64_t substeps = 4;
  /// Seconds that it takes at most, above 0; but for kWarmUpSteps and kFewestSteps, however long
  /// those take, and for tests between epochs. It takes less where the median is known before.
  double seconds = 1.5;

  static constexpr std::int64_t kWarmUpSteps = 2;
  static constexpr std::int64_t kFewestSteps = 5;
};

/// The durations of a workload's steps on this machine. A step of n minibatches on each thread
/// takes n substep_seconds + update_seconds.
struct Calibration {
  /// Of a minibatch on its core: gathering its samples, forward, backward, and adding its gradient
  /// to the others.
  double substep_seconds = 0;
  /// All else of a step: its plan, the rule, the optimizer, buffers, observers, starting the
  /// threads and waiting for the last.
  double update_seconds = 0;
  /// Of the gradient, as cores would send it.
  std::int64_t gradient_bytes = 0;
  /// Trainer::minibatches_at_once().
  std::int64_t minibatches_at_once = 1;

  // What it was measured with.

  std::int64_t minibatch_size = 1;
  int threads = 1;
  std::int64_t cores_per_thread = 1;
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

/// A workload on the threads of this machine: they share its memory and its caches, so that a
/// substep takes longer the more of them are at work.
struct MachineCalibration {
  /// With one core at work while the other threads wait, and with one on each of the threads. The
  /// same twice is a machine whose threads do not disturb each other.
  Calibration alone{};
  Calibration together{};
  /// All threads with many cores each: of one minibatch, and of several. Their gradients fit less
  /// into caches, and each core has a beginning and an end. Where they were not measured, steps is
  /// 0.
  Calibration many_cores{};
  Calibration many_full_cores{};

  [[nodiscard]] int threads() const { return together.threads; }
};

/// All of them, one after the other: of as many threads as the options say. Throws Error as
/// calibrate() does.
[[nodiscard]] MachineCalibration calibrate_machine(const Workload& workload,
                                                   const RunConfiguration& configuration,
                                                   CalibrationOptions options);

/// This machine with `busy` threads at work, 1 to threads(), as a cluster: a core for each, and no
/// network, since what it takes to add gradients in shared memory is in the seconds of a substep.
/// Substep and update lie on the line between one thread and all of them.
[[nodiscard]] ClusterModel this_machine(const MachineCalibration& calibration, int busy);

/// The most minibatches that a thread computes in a step of `minibatches` on `cores` emulated
/// cores: a thread that is free takes the next core with all of its minibatches. All at least 1.
[[nodiscard]] std::int64_t minibatches_of_busiest_thread(std::int64_t minibatches,
                                                         std::int64_t cores, int threads);

/// Seconds of a step of `minibatches` on `cores` emulated cores of this machine. Where some threads
/// have no core, or many cores were not measured: what StepTimes::step_seconds() says of
/// this_machine(), each of whose cores has as many minibatches as the busiest thread. Elsewhere
///
///     update + (passes of the busiest thread) x (of a pass) + (its minibatches) x (of a minibatch)
///
/// of which the three calibrations of all threads say each. A core is one pass, or, where it
/// computes several minibatches at once, as many as it has subtrees of the sum. All at least 1.
/// Throws Error as StepTimes does.
[[nodiscard]] double step_seconds_here(const MachineCalibration& calibration,
                                       std::int64_t minibatches, std::int64_t cores);

}  // namespace rubato
