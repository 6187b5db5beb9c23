#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include <rubato/runs/calibration.hpp>
#include <rubato/steps/step_plan.hpp>

#include "numbers/collective/host_runs.hpp"

namespace rubato {

namespace {

// The number of cores of each thread in the measurements with many cores.
constexpr std::int64_t kManyCores = 16;

// The work of a thread in a step.
struct Load {
  std::int64_t minibatches = 0;
  std::int64_t passes = 0;

  friend bool operator>(const Load& a, const Load& b) { return a.minibatches > b.minibatches; }
};

struct Step {
  std::int64_t minibatches = 1;
  std::int64_t cores = 1;
  int threads = 1;
  // The most minibatches of a pass; 1 if a core computes one after the other.
  std::int64_t at_once = 1;
};

std::int64_t passes_of(const MinibatchRun& run, const Step& step) {
  if (step.at_once == 1) return 1;
  const SummationTree tree(step.minibatches);
  const std::int64_t begin = run.first.value();
  std::int64_t passes = 0;
  for (const TreeNode root : roots_within(tree, begin, begin + run.count)) {
    const auto [first, end] = tree.leaves_below(root);
    passes += (end - first + step.at_once - 1) / step.at_once;
  }
  return passes;
}

// The load of the busiest thread, if a free thread takes the next core.
Load busiest_thread(const Step& step) {
  const std::int64_t busy = busy_cores(step.minibatches, step.cores);
  // The loads of the threads, the smallest on top.
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int thread = 0; thread < step.threads; ++thread) loads.push({});
  Load most;
  for (std::int64_t core = 0; core < busy; ++core) {
    const MinibatchRun run = share_of_core(MinibatchIndex{}, step.minibatches, CoreRank{core},
                                           step.cores, Assignment::contiguous);
    Load load = loads.top();
    load.minibatches += run.count;
    load.passes += passes_of(run, step);
    loads.pop();
    loads.push(load);
    if (load > most) most = load;
  }
  return most;
}

// A step of a calibration: the load of its busiest thread, and its seconds.
struct Measured {
  explicit Measured(const Calibration& calibration)
      : load(busiest_thread({.minibatches = calibration.threads * calibration.cores_per_thread *
                                            calibration.substeps,
                             .cores = calibration.threads * calibration.cores_per_thread,
                             .threads = calibration.threads,
                             .at_once = calibration.minibatches_at_once})),
        seconds(static_cast<double>(load.minibatches) * calibration.substep_seconds +
                calibration.update_seconds) {}

  Load load;
  double seconds;
};

// The seconds of a step in which all threads are busy, on the plane through the three measurements.
double seconds_of_all_threads(const MachineCalibration& calibration, const Load& load) {
  const Measured few(calibration.together);
  const Measured single(calibration.many_cores);
  const Measured full(calibration.many_full_cores);
  const auto more = [](std::int64_t than, std::int64_t value) {
    return static_cast<double>(value - than);
  };
  // `full` has as many passes as `single`, or more.
  const double passes = more(single.load.passes, full.load.passes);
  const double minibatches = more(single.load.minibatches, full.load.minibatches);
  const double passes_of_few = more(few.load.passes, full.load.passes);
  const double minibatches_of_few = more(few.load.minibatches, full.load.minibatches);
  const double from_single = full.seconds - single.seconds;
  const double from_few = full.seconds - few.seconds;
  const double determinant = passes * minibatches_of_few - minibatches * passes_of_few;
  const double pass = (from_single * minibatches_of_few - minibatches * from_few) / determinant;
  const double minibatch = (passes * from_few - from_single * passes_of_few) / determinant;
  return few.seconds + pass * more(few.load.passes, load.passes) +
         minibatch * more(few.load.minibatches, load.minibatches);
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
    one.idle_threads += options.threads - 1;
    calibration.alone = calibrate(workload, configuration, one);
  }
  options.cores_per_thread *= kManyCores;
  // The measurements are of several minibatches on each of few cores, several on each of many, and
  // one on each of many.
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
  return busiest_thread({.minibatches = minibatches, .cores = cores, .threads = threads})
      .minibatches;
}

double step_seconds_here(const MachineCalibration& calibration, std::int64_t minibatches,
                         std::int64_t cores) {
  const int threads = calibration.threads();
  const std::int64_t busy = std::min<std::int64_t>(threads, busy_cores(minibatches, cores));
  const Load most = busiest_thread({.minibatches = minibatches,
                                    .cores = cores,
                                    .threads = threads,
                                    .at_once = calibration.together.minibatches_at_once});
  if (busy == threads && calibration.many_cores.steps > 0) {
    return seconds_of_all_threads(calibration, most);
  }
  return StepTimes(this_machine(calibration, static_cast<int>(busy)))
      .step_seconds(most.minibatches * busy, busy);
}

}  // namespace rubato
