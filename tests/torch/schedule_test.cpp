#include <cmath>
#include <memory>
#include <string>

#include <gmock/gmock.h>

#include <rubato/libtorch/trainer.hpp>

#include "small_run.hpp"
#include "support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::dataset;
using test::options_of;
using test::rates_of;
using test::trainer_on;

TEST(Schedules, AreMultipliedByTheRule) {
  TrainOptions options = options_of("linear");
  options.epochs = 3;
  options.schedule = "step:every=1,gamma=0.5";
  TorchTrainer trainer = trainer_on(test::trace_of({8, 40}, TraceEnd::cycle), options);
  EXPECT_THAT(rates_of(*test::recorded(trainer)),
              Pointwise(DoubleEq(), {0.2, 1.0, 0.1, 0.5, 0.05, 0.25}));
}

TEST(Schedules, CountWhatTheyAreTold) {
  const auto rates = [](ScheduleUnit unit, const std::string& schedule) {
    TrainOptions options = options_of("root");
    options.epochs = 2;
    options.schedule = schedule;
    options.schedule_unit = unit;
    TorchTrainer trainer = trainer_on(test::trace_of({16, 32}, TraceEnd::cycle), options);
    return rates_of(*test::recorded(trainer));
  };
  const double small = 0.1 * 2;
  const double large = 0.1 * std::sqrt(8.0);
  EXPECT_THAT(rates(ScheduleUnit::steps, "warmup:length=4"),
              Pointwise(DoubleEq(), {0.0, large / 4, small / 2, large * 3 / 4}));
  EXPECT_THAT(rates(ScheduleUnit::samples, "warmup:length=96"),
              Pointwise(DoubleEq(), {0.0, large / 6, small / 2, large * 2 / 3}));
  // A step of the root rule counts for the root of its scale.
  const double cycle = 2 + std::sqrt(8.0);
  EXPECT_THAT(rates(ScheduleUnit::iterations, "warmup:length=100"),
              Pointwise(DoubleNear(1e-15),
                        {0.0, large * 0.02, small * cycle / 100, large * (cycle + 2) / 100}));
}

// An epoch is six steps of 8 of the 48 samples.
std::vector<double> rates_of_epochs(const std::string& schedule, ScheduleUnit unit,
                                    std::int64_t epochs) {
  TrainOptions options = options_of("constant");
  options.epochs = epochs;
  options.schedule = schedule;
  options.schedule_unit = unit;
  TorchTrainer trainer = trainer_on(Trace::constant(8), options);
  return rates_of(*test::recorded(trainer));
}

TEST(Schedules, InEpochsCountTheirFractions) {
  EXPECT_THAT(rates_of_epochs("warmup:length=2", ScheduleUnit::epochs, 2),
              Pointwise(DoubleNear(1e-15),
                        {0., .1 / 12, .1 * 2 / 12, .1 * 3 / 12, .1 * 4 / 12, .1 * 5 / 12, .05,
                         .1 * 7 / 12, .1 * 8 / 12, .1 * 9 / 12, .1 * 10 / 12, .1 * 11 / 12}));
  // What falls between epochs falls there.
  EXPECT_THAT(rates_of_epochs("step:every=1,gamma=0.5", ScheduleUnit::epochs, 2),
              Pointwise(DoubleEq(), {.1, .1, .1, .1, .1, .1, .05, .05, .05, .05, .05, .05}));
  EXPECT_THAT(rates_of_epochs("polynomial:total=2,power=1", ScheduleUnit::whole_epochs, 2),
              Pointwise(DoubleEq(), {.1, .1, .1, .1, .1, .1, .05, .05, .05, .05, .05, .05}));
}

// A step that does not fit ends an epoch before its samples: the next begins at a whole number.
TEST(Schedules, InEpochsBeginEachAtAWholeNumber) {
  TrainOptions options = options_of("constant");
  options.epochs = 3;
  options.schedule = "warmup:length=3";
  TorchTrainer trainer = trainer_on(test::trace_of({40, 16, 16}, TraceEnd::cycle), options);
  EXPECT_THAT(rates_of(*test::recorded(trainer)),
              Pointwise(DoubleNear(1e-15), {0., .1 / 3, .1 / 3 * (1 + 16. / 48), .1 / 3 * 2}));
}

TEST(Schedules, LearnInTheFirstEpoch) {
  EXPECT_THAT(error_of([] { rates_of_epochs("warmup:length=1", ScheduleUnit::whole_epochs, 1); }),
              HasSubstr("has a rate of 0 for the whole first epoch"));
}

TEST(Schedules, OnAPlateauHearTheWatchedMetric) {
  // Nothing is learned, so nothing improves.
  TrainOptions options = options_of("constant");
  options.epochs = 5;
  options.learning_rate = 1e-30;
  options.schedule = "plateau:patience=1,factor=0.5";
  options.watch = Metric::test_loss;
  TorchTrainer trainer = trainer_on(Trace::constant(48), options);
  trainer.set_test(dataset());
  EXPECT_THAT(rates_of(*test::recorded(trainer)),
              Pointwise(DoubleEq(), {1e-30, 1e-30, 1e-30, 0.5e-30, 0.5e-30}));

  TorchTrainer without_test = trainer_on(Trace::constant(48), options);
  EXPECT_THAT(error_of([&] { without_test.fit(); }), HasSubstr("there is no test set"));
  options.watch = Metric::train_loss;
  TorchTrainer on_training = trainer_on(Trace::constant(48), options);
  EXPECT_EQ(error_of([&] { on_training.fit(); }), "no error");
}

TEST(Schedules, OnAPlateauFollowTheWatchedMetric) {
  TrainOptions options = options_of("constant");
  options.epochs = 6;
  options.schedule = "plateau:patience=1,factor=0.5";
  options.watch = Metric::test_accuracy;
  TorchTrainer trainer = trainer_on(Trace::constant(4), options);
  trainer.set_test(dataset());
  const auto recorder = test::recorded(trainer);
  // It learns, and what rises is not taken for what gets worse.
  const auto rate_by = [&](const std::string& schedule) {
    const auto heard = ScheduleChoice(schedule).make({});
    for (std::size_t i = 0; i + 1 < recorder->epochs.size(); ++i) {
      heard->observe(recorder->epochs[i].test->accuracy.value());
    }
    return 0.1 * heard->factor(0);
  };
  EXPECT_EQ(recorder->steps.back().learning_rate,
            rate_by("plateau:patience=1,factor=0.5,mode=max"));
  EXPECT_GT(recorder->steps.back().learning_rate,
            rate_by("plateau:patience=1,factor=0.5,mode=min"));
  options.schedule = "plateau:mode=min";
  EXPECT_EQ(error_of([&] { trainer_on(Trace::constant(4), options); }),
            "plateau: mode: test-accuracy is watched, which is better when it is larger; accepted: "
            "max");
  options.schedule = "plateau:mode=max";
  EXPECT_EQ(error_of([&] { trainer_on(Trace::constant(4), options); }), "no error");
}

TEST(Iterations, EndTrainingWhenTheyAreReached) {
  TrainOptions options = options_of("linear");
  options.epochs = 100;
  options.budget.iterations = 17;  // an epoch is 12 of them: 2, then 10
  TorchTrainer trainer = trainer_on(test::trace_of({8, 40}, TraceEnd::cycle), options);
  trainer.set_test(dataset());
  const auto recorder = trainer.add_observer<test::Recorder>();
  const TrainResult result = trainer.fit();
  EXPECT_EQ(result.steps, 4);
  EXPECT_EQ(result.iterations, 24);
  EXPECT_EQ(result.stopped, "17 iterations reached");
  EXPECT_EQ(recorder->steps[2].iterations, 14);

  // In the middle of an epoch, which is then evaluated as any other.
  options.budget.iterations = 14;
  TorchTrainer shorter = trainer_on(test::trace_of({8, 40}, TraceEnd::cycle), options);
  shorter.set_test(dataset());
  const auto of_shorter = shorter.add_observer<test::Recorder>();
  EXPECT_EQ(shorter.fit().steps, 3);
  ASSERT_EQ(of_shorter->epochs.size(), 2U);
  EXPECT_FALSE(of_shorter->epochs[1].whole);
  EXPECT_EQ(shorter.result().epochs, 1);
  EXPECT_EQ(of_shorter->epochs[1].steps, 1);
  EXPECT_EQ(of_shorter->epochs[1].samples, 8);
  EXPECT_DOUBLE_EQ(of_shorter->epochs[1].train_loss, of_shorter->steps[2].loss);
  EXPECT_TRUE(of_shorter->epochs[1].test.has_value());
}

}  // namespace
}  // namespace rubato
