#pragma once

#include <cstdint>

#include <rubato/run/calibration.hpp>
#include <rubato/sim/cluster_model.hpp>

namespace rubato {

/// A workload on the threads of this machine: they share its memory and its caches, so that a
/// substep takes longer the more of them are at work.
struct MachineCalibration {
  /// With one core at work, and with one on each of the threads. The same twice is a machine whose
  /// threads do not disturb each other.
  Calibration alone{};
  Calibration together{};

  [[nodiscard]] int threads() const { return together.threads; }
};

/// Both, one after the other: of as many threads as the options say. Throws Error as calibrate()
/// does.
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

/// Seconds of a step of `minibatches` on `cores` emulated cores of this machine: what
/// StepTimes::step_seconds() says of this_machine(), each of whose cores has as many minibatches as
/// the busiest thread. All at least 1. Throws Error as StepTimes does.
[[nodiscard]] double step_seconds_here(const MachineCalibration& calibration,
                                       std::int64_t minibatches, std::int64_t cores);

}  // namespace rubato
