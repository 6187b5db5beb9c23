// What steps take, out of timings that are given, and of a workload whose minibatches take a known
// time at least. How fast this machine is decides nothing here.

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/runs/calibration.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "runs/run/workload/step_samples.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// Of four minibatches on two threads: each takes 1 + 8 + 1 s, and 3 s pass besides.
StepTiming four_minibatches() {
  return {.data = 4, .compute = 32, .reduce = 4, .update = 2, .wall = 22};
}

TEST(StepSamples, AreMediansOfAMinibatchAndOfAllElse) {
  StepSamples samples(4, 2);
  samples.add(23, four_minibatches());
  EXPECT_EQ(samples.count(), 1);
  EXPECT_EQ(samples.substep_seconds(), 10);
  EXPECT_EQ(samples.update_seconds(), 23 - 2 * 10) << "two minibatches on each thread";
  EXPECT_EQ(samples.spread(), 0);

  // Two that something disturbed, and two that were fast.
  StepTiming slow = four_minibatches();
  slow.compute = 400;
  samples.add(300, slow);
  samples.add(1000, slow);
  StepTiming fast = four_minibatches();
  fast.reduce = 0;
  samples.add(20, fast);
  samples.add(20, fast);
  EXPECT_EQ(samples.substep_seconds(), 10);
  EXPECT_EQ(samples.update_seconds(), 3);
  // Of 20, 20, 23, 300, 1000.
  EXPECT_THAT(samples.spread(), DoubleNear((300.0 - 20) / 23, 1e-12));
}

TEST(StepSamples, AreNeverLessThanNothing) {
  StepSamples samples(4, 2);
  // Two clocks, read one after the other.
  samples.add(19.9, four_minibatches());
  EXPECT_EQ(samples.update_seconds(), 0);
}

TEST(StepSamples, OfAnEvenNumberHaveTheirMedianInTheMiddle) {
  StepSamples samples(1, 1);
  for (const double seconds : {4.0, 1.0, 2.0, 3.0}) samples.add(seconds, {.compute = seconds});
  EXPECT_EQ(samples.substep_seconds(), 2.5);
  EXPECT_THAT(samples.spread(), DoubleNear(1.5 / 2.5, 1e-12));
}

TEST(StepSamples, AreSettledWhenMoreOfThemWouldNotMoveTheMedian) {
  StepSamples equal(1, 1);
  for (int i = 0; i < 19; ++i) equal.add(1, {.compute = 1});
  EXPECT_FALSE(equal.settled()) << "19";
  equal.add(1, {.compute = 1});
  EXPECT_TRUE(equal.settled());

  // Half of them 10 % slower: within 0.5 % of a median of 1.05 after 363 steps.
  StepSamples uneven(1, 1);
  while (!uneven.settled()) {
    uneven.add(uneven.count() % 2 == 0 ? 1 : 1.1, {.compute = 1});
    ASSERT_LT(uneven.count(), 500);
  }
  EXPECT_GE(uneven.count(), 300);
}

// Minibatches that take so long at least, however fast or busy the machine is.
constexpr std::chrono::milliseconds kSubstep(2);
constexpr std::chrono::milliseconds kUpdate(1);

class SleepingObjective final : public ObjectiveOf<double> {
 public:
  explicit SleepingObjective(std::unique_ptr<ObjectiveOf<double>> inner)
      : inner_(std::move(inner)) {}

  std::int64_t samples() const override { return inner_->samples(); }
  const std::vector<TrainedArray>& trained() const override { return inner_->trained(); }
  const std::vector<NamedArray>& parameters() const override { return inner_->parameters(); }
  std::string fingerprint() const override { return "asleep"; }
  std::span<double> flat_parameters() override { return inner_->flat_parameters(); }
  std::unique_ptr<Evaluator<double>> make_evaluator() override {
    class Asleep final : public Evaluator<double> {
     public:
      double evaluate(const Minibatch&, const Leaf<double>&, EvaluatorProgress&) override {
        std::this_thread::sleep_for(kSubstep);
        return 1;
      }
    };
    return std::make_unique<Asleep>();
  }
  // After the sum.
  void move_averages(std::span<const double>, std::int64_t) override {
    std::this_thread::sleep_for(kUpdate);
  }

 private:
  std::unique_ptr<ObjectiveOf<double>> inner_;
};

// Tells with which options it was trained.
class SleepingWorkload final : public Workload {
 public:
  std::string description() const override { return "asleep"; }
  std::int64_t samples() const override { return 64; }
  EngineFacts engine() const override { return {}; }
  std::int64_t gradient_bytes() const override { return std::int64_t{5} * 8; }
  Trainer make_trainer(std::unique_ptr<StepSource> steps,
                       const TrainOptions& options) const override {
    asked_for = options;
    batch_size = steps->max_batch();
    return {std::make_unique<SleepingObjective>(
                noisy_quadratic<double>({.dim = 5, .samples = samples()})),
            std::move(steps), options};
  }

  mutable TrainOptions asked_for;
  mutable std::int64_t batch_size = 0;
};

constexpr CalibrationOptions kBrief{.substeps = 3, .seconds = 1e-3};

TEST(Calibration, HasWhatSubstepsAndUpdatesTake) {
  const SleepingWorkload workload;
  const Calibration one = calibrate(workload, {.minibatch = 4}, kBrief);
  EXPECT_GE(one.substep_seconds, 2e-3);
  EXPECT_GE(one.update_seconds, 1e-3);
  EXPECT_GE(one.spread, 0);
  EXPECT_EQ(one.steps, CalibrationOptions::kFewestSteps) << "there was no time for more";
  EXPECT_EQ(one.gradient_bytes, 5 * 8);
  EXPECT_EQ(one.minibatch_size, 4);
  EXPECT_EQ(one.threads, 1);
  EXPECT_EQ(one.substeps, 3);
  EXPECT_EQ(workload.batch_size, 3 * 4);

  // Three threads sleep at the same time.
  const Calibration three =
      calibrate(workload, {.minibatch = 4}, {.threads = 3, .substeps = 2, .seconds = 1e-3});
  EXPECT_GE(three.substep_seconds, 2e-3);
  EXPECT_GE(three.update_seconds, 1e-3);
  EXPECT_EQ(three.threads, 3);
  EXPECT_EQ(workload.batch_size, 3 * 2 * 4);
}

TEST(Calibration, TrainsAsTheConfigurationSaysButForWhatIsNoPartOfAStep) {
  const SleepingWorkload workload;
  const Calibration calibration = calibrate(workload,
                                            {.cores = 64,
                                             .minibatch = 64,
                                             .rule = "adascale",
                                             .learning_rate = 10,
                                             .schedule = "warmup:length=3",
                                             .optimizer = "adam",
                                             .epochs = 1,
                                             .iterations = 1,
                                             .threads = 7,
                                             .fault = "core=0,step=1",
                                             .straggler = "core=0,factor=9"},
                                            kBrief);
  EXPECT_EQ(calibration.steps, CalibrationOptions::kFewestSteps);
  const TrainOptions& options = workload.asked_for;
  EXPECT_EQ(options.rule.text(), "adascale");
  EXPECT_EQ(options.optimizer.method, OptimizerMethod(AdamOptions{}));
  EXPECT_EQ(options.minibatch_size, 64);
  EXPECT_EQ(options.cores, 1);
  EXPECT_EQ(options.threads, 1);
  EXPECT_LT(options.learning_rate, 1e-6);
  EXPECT_EQ(options.schedule.text(), "constant");
  EXPECT_EQ(options.budget.iterations, std::nullopt);
  EXPECT_TRUE(options.faults.planned.empty());
  EXPECT_TRUE(options.stragglers.empty());
}

TEST(Calibration, LeavesNothingBehind) {
  const RunConfiguration configuration{
      .model = "quadratic:dim=5,samples=512", .trace = "64", .epochs = 2, .threads = 2};
  const auto weights = [&](const std::shared_ptr<const Workload>& workload) {
    return rubato::Run(configuration, workload).execute().summary.value().weights_sha256;
  };
  const std::string before = weights(dense_workload(configuration));
  const auto workload = dense_workload(configuration);
  const Calibration calibration = calibrate(*workload, configuration, kBrief);
  EXPECT_EQ(calibration.gradient_bytes, 5 * 4);
  EXPECT_EQ(weights(workload), before);
  // Cores send the squares of their gradients, too, if they are asked for.
  RunConfiguration squaring = configuration;
  squaring.optimizer = "adamw:second-moment=minibatch";
  EXPECT_EQ(calibrate(*workload, squaring, kBrief).gradient_bytes, 2 * 5 * 4);
}

TEST(Calibration, RefusesWhatIsOutOfRange) {
  const SleepingWorkload workload;
  const auto error_with = [&](const CalibrationOptions& options) {
    return error_of([&] { return calibrate(workload, {}, options); });
  };
  EXPECT_EQ(error_with({.threads = 0}), "calibration: 0 threads; accepted: 1 and more");
  EXPECT_EQ(error_with({.idle_threads = -1}), "calibration: -1 idle threads; accepted: 0 and more");
  EXPECT_EQ(error_with({.cores_per_thread = 0}),
            "calibration: 0 cores for each thread; accepted: 1 and more");
  EXPECT_EQ(error_with({.substeps = 0}),
            "calibration: 0 minibatches of each core in a step; accepted: 1 and more");
  EXPECT_EQ(error_with({.seconds = 0}), "calibration: 0 seconds; accepted: a number above 0");
  EXPECT_EQ(error_with({.seconds = std::numeric_limits<double>::infinity()}),
            "calibration: inf seconds; accepted: a number above 0");
  EXPECT_THAT(error_of([&] { return calibrate(workload, {.minibatch = 65}, kBrief); }),
              HasSubstr("65"));
}

}  // namespace
}  // namespace rubato
