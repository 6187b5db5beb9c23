#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include <rubato/runs/calibration.hpp>
#include <rubato/steps/step_plan.hpp>

namespace rubato {

namespace {

// Cores of each thread where it has many.
constexpr std::int64_t kManyCores = 16;

// Of a thread in a step.
struct Load {
  std::int64_t minibatches = 0;
  std::int64_t cores = 0;

  friend bool operator>(const Load& a, const Load& b) { return a.minibatches > b.minibatches; }
};

// A thread that is free takes the next core.
Load busiest_thread(std::int64_t minibatches, std::int64_t cores, int threads) {
  const std::int64_t busy = busy_cores(minibatches, cores);
  // Of each thread, the least first.
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int thread = 0; thread < threads; ++thread) loads.push({});
  Load most;
  for (std::int64_t core = 0; core < busy; ++core) {
    Load load = loads.top();
    load.minibatches += minibatches / cores + (core < minibatches % cores ? 1 : 0);
    load.cores += 1;
    loads.pop();
    loads.push(load);
    if (load > most) most = load;
  }
  return most;
}

// Of a step with equal threads.
double step_seconds_of(const Calibration& calibration) {
  const auto minibatches = static_cast<double>(calibration.cores_per_thread * calibration.substeps);
  return minibatches * calibration.substep_seconds + calibration.update_seconds;
}

// The seconds of a step in which all threads are busy: the plane through what was measured.
double seconds_of_all_threads(const MachineCalibration& calibration, const Load& load) {
  const Calibration& few = calibration.together;
  const Calibration& single = calibration.many_cores;
  const Calibration& full = calibration.many_full_cores;
  const auto minibatches_of = [](const Calibration& c) { return c.cores_per_thread * c.substeps; };
  const auto between = [](std::int64_t from, std::int64_t to) {
    return static_cast<double>(to - from);
  };
  const double minibatch = (step_seconds_of(full) - step_seconds_of(single)) /
                           between(minibatches_of(single), minibatches_of(full));
  const double core = (step_seconds_of(full) - step_seconds_of(few) -
                       minibatch * between(minibatches_of(few), minibatches_of(full))) /
                      between(few.cores_per_thread, full.cores_per_thread);
  return step_seconds_of(few) + core * between(few.cores_per_thread, load.cores) +
         minibatch * between(minibatches_of(few), load.minibatches);
}

}  // namespace

MachineCalibration calibrate_machine(const Workload& workload,
                                     const RunConfiguration& configuration,
                                     CalibrationOptions options) {
  MachineCalibration calibration;
  calibration.together = calibrate(workload, configuration, options);
  calibration.alone = calibration.together;
  if (options.threads > 1) {
    CalibrationOptions one = options;
    one.threads = 1;
    calibration.alone = calibrate(workload, configuration, one);
  }
  options.cores_per_thread *= kManyCores;
  // Several minibatches on each of few cores and of many, and one on each of many.
  options.substeps = std::max<std::int64_t>(options.substeps, 2);
  calibration.many_full_cores = calibrate(workload, configuration, options);
  options.substeps = 1;
  calibration.many_cores = calibrate(workload, configuration, options);
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
  return busiest_thread(minibatches, cores, threads).minibatches;
}

double step_seconds_here(const MachineCalibration& calibration, std::int64_t minibatches,
                         std::int64_t cores) {
  const int threads = calibration.threads();
  const std::int64_t busy = std::min<std::int64_t>(threads, busy_cores(minibatches, cores));
  const Load most = busiest_thread(minibatches, cores, threads);
  if (busy == threads && calibration.many_cores.steps > 0) {
    return seconds_of_all_threads(calibration, most);
  }
  return StepTimes(this_machine(calibration, static_cast<int>(busy)))
      .step_seconds(most.minibatches * busy, busy);
}

}  // namespace rubato
