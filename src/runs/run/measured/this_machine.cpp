#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include <rubato/runs/calibration.hpp>
#include <rubato/steps/step_plan.hpp>

namespace rubato {

MachineCalibration calibrate_machine(const Workload& workload,
                                     const RunConfiguration& configuration,
                                     CalibrationOptions options) {
  MachineCalibration calibration;
  calibration.together = calibrate(workload, configuration, options);
  if (options.threads == 1) {
    calibration.alone = calibration.together;
    return calibration;
  }
  options.threads = 1;
  calibration.alone = calibrate(workload, configuration, options);
  return calibration;
}

ClusterModel this_machine(const MachineCalibration& calibration, int busy) {
  const Calibration& alone = calibration.alone;
  const Calibration& together = calibration.together;
  const int threads = calibration.threads();
  const double share =
      threads == 1 ? 0 : static_cast<double>(busy - 1) / static_cast<double>(threads - 1);
  const auto between = [share](double one, double all) { return one + share * (all - one); };
  ClusterModel model;
  model.substep_seconds = between(alone.substep_seconds, together.substep_seconds);
  model.update_seconds = between(alone.update_seconds, together.update_seconds);
  model.cores_per_host = threads;
  return model;
}

std::int64_t minibatches_of_busiest_thread(std::int64_t minibatches, std::int64_t cores,
                                           int threads) {
  const std::int64_t busy = busy_cores(minibatches, cores);
  // Of each thread, the least first.
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> loads;
  for (int thread = 0; thread < threads; ++thread) loads.push(0);
  std::int64_t most = 0;
  for (std::int64_t core = 0; core < busy; ++core) {
    const std::int64_t load =
        loads.top() + minibatches / cores + (core < minibatches % cores ? 1 : 0);
    loads.pop();
    loads.push(load);
    most = std::max(most, load);
  }
  return most;
}

double step_seconds_here(const MachineCalibration& calibration, std::int64_t minibatches,
                         std::int64_t cores) {
  const int threads = calibration.threads();
  const std::int64_t busy = std::min<std::int64_t>(threads, busy_cores(minibatches, cores));
  const std::int64_t most = minibatches_of_busiest_thread(minibatches, cores, threads);
  return StepTimes(this_machine(calibration, static_cast<int>(busy)))
      .step_seconds(most * busy, busy);
}

}  // namespace rubato
