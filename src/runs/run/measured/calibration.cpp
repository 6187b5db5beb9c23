#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/calibration.hpp>

#include "base/core/system/stopwatch.hpp"
#include "runs/run/workload/step_samples.hpp"

namespace rubato {

namespace {

void require_in_range(const CalibrationOptions& options) {
  if (options.threads < 1) {
    throw Error(fmt::format("calibration: {} threads; accepted: 1 and more", options.threads));
  }
  if (options.idle_threads < 0) {
    throw Error(
        fmt::format("calibration: {} idle threads; accepted: 0 and more", options.idle_threads));
  }
  if (options.cores_per_thread < 1) {
    throw Error(fmt::format("calibration: {} cores for each thread; accepted: 1 and more",
                            options.cores_per_thread));
  }
  if (options.substeps < 1) {
    throw Error(
        fmt::format("calibration: {} minibatches of each core in a step; accepted: 1 and "
                    "more",
                    options.substeps));
  }
  if (!(options.seconds > 0) || !std::isfinite(options.seconds)) {
    throw Error(
        fmt::format("calibration: {} seconds; accepted: a number above 0", options.seconds));
  }
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
          .gradient_bytes = workload.gradient_bytes(),
          .minibatches_at_once = trainer.minibatches_at_once(),
          .minibatch_size = configuration.minibatch,
          .threads = options.threads,
          .cores_per_thread = options.cores_per_thread,
          .substeps = options.substeps,
          .steps = samples.count(),
          .spread = samples.spread()};
}

}  // namespace rubato
