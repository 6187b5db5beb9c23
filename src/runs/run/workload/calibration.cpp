// calibrate() trains the workload on a trace of constant batches, and StepSampler takes the time
// from the end of one step to the end of the next until their median is settled or the time is over
// (docs/adr/0038). A prediction needs the load of the busiest thread, its minibatches and passes:
// busiest_thread() gives each task of cores to the thread with the fewest minibatches, as a thread
// that is free takes the next one. With all threads busy, seconds are a linear function of this
// load, given by the plane through three calibrations (seconds_of_all_threads()).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include <rubato/runs/calibration.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"
#include "loop/runtime/step_executor.hpp"
#include "numbers/collective/host_runs.hpp"
#include "run_steps.hpp"
#include "step_samples.hpp"

namespace rubato {

namespace {

void require_in_range(const CalibrationOptions& options) {
  const auto require_least = [](std::int64_t value, std::int64_t least, std::string_view of) {
    if (value >= least) return;
    throw_error("calibration: {} {}; accepted: {} and more", value, of, least);
  };
  require_least(options.threads, 1, "threads");
  require_least(options.idle_threads, 0, "idle threads");
  require_least(options.cores_per_thread, 1, "cores for each thread");
  require_least(options.substeps, 1, "minibatches of each core in a step");
  if (options.seconds > 0 && std::isfinite(options.seconds)) return;
  throw_error("calibration: {} seconds; accepted: a number above 0", options.seconds);
}

// Options with which a step takes as long as in the run, and training neither ends nor diverges.
TrainOptions options_of_calibration(const RunConfiguration& configuration,
                                    const CalibrationOptions& options) {
  constexpr std::int64_t kEndless = 1'000'000;
  constexpr double kNegligible = 1e-9;
  TrainOptions train = train_options(configuration);
  train.epochs = kEndless;
  train.budget = {};
  // A step may be larger than the data set.
  train.remainder = Remainder::carry;
  train.learning_rate = kNegligible;
  train.schedule = "constant";
  train.own_schedule = {};
  train.cores = options.threads * options.cores_per_thread;
  train.faults = {};
  train.stragglers.clear();
  train.threads = options.threads + options.idle_threads;
  return train;
}

// Measures steps, and pauses training when they are enough.
class StepSampler final : public Observer {
 public:
  StepSampler(const CalibrationOptions& options, std::int64_t minibatches)
      : seconds_(options.seconds), samples_(minibatches, options.threads) {}

  // A step includes neither the test between two epochs nor the work of this observer.
  void on_epoch_begin(Training&, const EpochStart&) override { step_.lap(); }
  void on_step(Training& training, const StepRecord& step) override {
    const double seconds = step_.lap();
    ++steps_;
    const bool warm =
        steps_ > CalibrationOptions::kWarmUpSteps && all_.seconds() > kWarmUp * seconds_;
    // A step that half precision skips does less work.
    if (warm && step.applied) samples_.add(seconds, step.seconds);
    if (is_enough()) training.pause();
    step_.lap();
  }

  [[nodiscard]] const StepSamples& samples() const { return samples_; }

 private:
  static constexpr double kWarmUp = 0.1;

  [[nodiscard]] bool is_enough() {
    const std::int64_t count = samples_.count();
    if (count < CalibrationOptions::kFewestSteps) return false;
    if (all_.seconds() > seconds_) return true;
    // settled() takes longer than the shortest steps, so it is called rarely.
    if (count < next_look_) return false;
    next_look_ = count + count / 4;
    return samples_.settled();
  }

  double seconds_;
  StepSamples samples_;
  std::int64_t steps_ = 0;
  std::int64_t next_look_ = CalibrationOptions::kFewestSteps;
  Stopwatch all_;
  Stopwatch step_;
};

}  // namespace

Calibration calibrate(const Workload& workload, const RunConfiguration& configuration,
                      const CalibrationOptions& options) {
  require_in_range(options);
  const std::int64_t minibatches = options.threads * options.cores_per_thread * options.substeps;
  Trainer trainer = make_trainer(
      workload, configuration,
      std::make_unique<TraceSource>(Trace::constant(minibatches * configuration.minibatch)),
      options_of_calibration(configuration, options));
  const auto sampler = trainer.add_observer<StepSampler>(options, minibatches);
  static_cast<void>(trainer.fit());
  const StepSamples& samples = sampler->samples();
  return {.substep_seconds = samples.substep_seconds(),
          .update_seconds = samples.update_seconds(),
          .gradient_bytes = bytes_exchanged(configuration, workload.gradient_bytes()),
          .minibatches_at_once = trainer.minibatches_at_once(),
          .minibatch_size = configuration.minibatch,
          .threads = options.threads,
          .cores_per_thread = options.cores_per_thread,
          .substeps = options.substeps,
          .steps = samples.count(),
          .spread = samples.spread()};
}

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

// The load of the busiest thread, if a free thread takes the next task.
Load busiest_thread(const Step& step) {
  // The loads of the threads, the smallest on top.
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int thread = 0; thread < step.threads; ++thread) loads.push({});
  Load most;
  const StepPlan plan{
      .index = {}, .cores = step.cores, .first_minibatch = {}, .minibatches = step.minibatches};
  CoreTasks tasks;
  for (const MinibatchRun& run :
       tasks.divide(plan, Assignment::contiguous, step.threads, step.at_once)) {
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
  // The three are on a line if their passes are equally long.
  if (determinant == 0) {
    return few.seconds +
           from_few / minibatches_of_few * more(few.load.minibatches, load.minibatches);
  }
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
