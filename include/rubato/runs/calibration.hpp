#pragma once

#include <cstdint>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/cluster_model.hpp>

namespace rubato {

/// How to measure the steps of a workload.
struct CalibrationOptions {
  /// Cores that compute at the same time, each on a thread of its own; at least 1. With 1, a core
  /// has the machine to itself, as each core of a cluster does.
  int threads = 1;
  /// Threads that have no core in a step but take part in its update; at least 0.
  int idle_threads = 0;
  /// Cores in a step for each of these threads, which compute them one after the other; at least 1.
  std::int64_t cores_per_thread = 1;
  /// Minibatches of each core in a step, at least 1.
  std::int64_t substeps = 4;
  /// The time limit in seconds, above 0. kWarmUpSteps and kFewestSteps are completed however long
  /// they take, and tests between epochs do not count. Measuring stops earlier once the median is
  /// known.
  double seconds = 1.5;

  static constexpr std::int64_t kWarmUpSteps = 2;
  static constexpr std::int64_t kFewestSteps = 5;
};

/// The durations of a workload's steps on this machine. A step of n minibatches on each thread
/// takes n substep_seconds + update_seconds.
struct Calibration {
  /// Seconds of a minibatch on its core: gathering its samples, forward, backward, and adding its
  /// gradient to the others.
  double substep_seconds = 0;
  /// Seconds of all else in a step: its plan, the rule, the optimizer, buffers, observers, starting
  /// the threads and waiting for the last.
  double update_seconds = 0;
  /// Size of the gradient, and of its squares if the optimizer needs them, as cores would send it.
  std::int64_t gradient_bytes = 0;
  /// The value of Trainer::minibatches_at_once().
  std::int64_t minibatches_at_once = 1;

  // The conditions of the measurement.

  std::int64_t minibatch_size = 1;
  int threads = 1;
  std::int64_t cores_per_thread = 1;
  std::int64_t substeps = 1;
  /// The number of measured steps, and the distance between the quartiles of their seconds,
  /// relative to the median: 0.02 on a machine that does nothing else, 0.2 on one that does.
  std::int64_t steps = 0;
  double spread = 0;
};

/// Trains the workload as the configuration says, on a trainer of its own at a negligible learning
/// rate, and measures the steps. The results are medians: a disturbance of fewer than half of the
/// steps does not count, and one of all of them counts in full, as it does in the run that is to be
/// predicted. Faults, stragglers and the schedule are left out. No other trainer may train
/// meanwhile.
///
/// Has no lasting effect: whatever is trained afterwards has the same bits. Throws Error for
/// options out of their range, and as Trainer does.
[[nodiscard]] Calibration calibrate(const Workload& workload, const RunConfiguration& configuration,
                                    const CalibrationOptions& options = {});

/// The durations of a workload's steps on the threads of this machine. They share its memory and
/// its caches, so a substep takes longer the more of them are busy.
struct MachineCalibration {
  /// One core computes while the other threads wait, and one core on each of the threads. Both are
  /// equal on a machine whose threads do not disturb each other.
  Calibration alone{};
  Calibration together{};
  /// All threads with many cores each, of one minibatch and of several. Their gradients fit less
  /// well into caches, and each core has a beginning and an end. Their `steps` are 0 if they were
  /// not measured.
  Calibration many_cores{};
  Calibration many_full_cores{};

  [[nodiscard]] int threads() const { return together.threads; }
};

/// Measures all of them, one after the other, on as many threads as the options say. Throws Error
/// as calibrate() does.
[[nodiscard]] MachineCalibration calibrate_machine(const Workload& workload,
                                                   const RunConfiguration& configuration,
                                                   CalibrationOptions options);

/// This machine with `busy` threads at work, 1 to threads(), as a cluster: a core for each, and no
/// network, since the time for adding gradients in shared memory is part of a substep. The seconds
/// of substep and update are interpolated linearly between one thread and all of them.
[[nodiscard]] ClusterModel this_machine(const MachineCalibration& calibration, int busy);

/// Seconds of a step of `minibatches` on `cores` emulated cores of this machine. If some threads
/// have no core, or many cores were not measured, this is StepTimes::step_seconds() of
/// this_machine(), each of whose cores has as many minibatches as the busiest thread. Otherwise it
/// is
///
///     update + (passes of the busiest thread) x (seconds of a pass)
///            + (its minibatches) x (seconds of a minibatch)
///
/// in which the three calibrations of all threads give each term. A core is one pass or, if several
/// minibatches are computed at once, a task of neighbouring cores is one pass for each of its
/// subtrees of the sum. If all passes of the three have equally many minibatches, the seconds of a
/// pass are part of those of its minibatches. All arguments are at least 1. Throws Error as
/// StepTimes does.
[[nodiscard]] double step_seconds_here(const MachineCalibration& calibration,
                                       std::int64_t minibatches, std::int64_t cores);

}  // namespace rubato
