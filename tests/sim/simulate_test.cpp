// What is simulated is what training does, to the last digit.

#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/sim/clocked_source.hpp>
#include <rubato/sim/simulate.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

std::unique_ptr<ClockedSource> source_of_training() {
  ClockOptions options;
  options.cluster.substep_seconds = 0.4;
  options.cluster.gradient_bytes = 1000;
  options.cluster.bandwidth_within_host = 1e5;
  options.cluster.restart_seconds = 0.3;
  options.cluster.price = 1.5;
  options.minibatch_size = 2;
  options.max_batch = 12;
  return std::make_unique<ClockedSource>(
      Availability({{0, 3}, {0.7, 5}, {1.1, 6}, {2.35, 1}, {2.9, 0}, {4.1, 4}}, 5, "cloud",
                   TraceEnd::cycle),
      [](std::int64_t devices, const SourceProgress&) {
        return TraceStep{.batch_size = 2 * devices, .cores = devices};
      },
      options);
}

TEST(Simulate, IsWhatTrainingDoes) {
  for (const Remainder remainder : {Remainder::drop, Remainder::carry}) {
    SCOPED_TRACE(choice_name(kRemainders, remainder));
    TrainOptions options{.epochs = 3, .minibatch_size = 2, .learning_rate = 0.01, .threads = 2};
    options.remainder = remainder;
    Trainer trainer(test::tiny_objective(), source_of_training(), options);
    const auto recorder = trainer.add_observer<test::Recorder>();
    const TrainResult result = trainer.fit();

    std::vector<SimulatedStep> steps;
    const auto source = source_of_training();
    const SimulationResult simulated =
        simulate(*source,
                 {.dataset_size = 48,
                  .minibatch_size = 2,
                  .cores = options.cores,
                  .remainder = remainder,
                  .epochs = 3},
                 [&](const SimulatedStep& step) { steps.push_back(step); });
    ASSERT_EQ(steps.size(), recorder->steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const StepRecord& trained = recorder->steps[i];
      EXPECT_EQ(steps[i].epoch, trained.epoch);
      EXPECT_EQ(steps[i].plan.batch_size, trained.plan.batch_size);
      EXPECT_EQ(steps[i].plan.cores, trained.plan.cores);
      EXPECT_EQ(steps[i].plan.first_minibatch, trained.plan.first_minibatch);
      EXPECT_EQ(steps[i].time, trained.time);
    }
    EXPECT_EQ(simulated.time, result.time);
    EXPECT_EQ(simulated.epochs, 3);
    EXPECT_EQ(simulated.steps, result.steps);
    EXPECT_EQ(simulated.samples, result.samples);
    EXPECT_EQ(recorder->epochs.back().time, result.time);
    EXPECT_GT(result.time->restarts, 0);
    EXPECT_GT(result.time->idle_seconds, 0);
  }
}

TEST(Simulate, TimeIsPartOfTheStateOfTraining) {
  const MakeTrainer make = [](const std::function<void(TrainOptions&)>& change) {
    TrainOptions options{.epochs = 2, .minibatch_size = 2, .learning_rate = 0.01};
    change(options);
    return Trainer(test::tiny_objective(), source_of_training(), options);
  };
  Trainer whole = make([](TrainOptions&) {});
  const ClockTime end = *whole.fit().time;
  for (const std::int64_t step : {1, 4, 7}) {
    Trainer first = make([](TrainOptions&) {});
    first.add_observer<test::Recorder>([step](Training& training, const StepRecord& record) {
      if (record.plan.index.value() + 1 == step) training.pause();
    });
    first.fit();
    Trainer second = make([](TrainOptions&) {});
    second.load_state(first.state());
    EXPECT_EQ(second.result().time, first.result().time);
    EXPECT_EQ(second.fit().time, end);
    EXPECT_EQ(test::difference_of(second, whole), std::nullopt);
  }
}

// Ended by each part of a budget: after the same step, with the same whole epochs.
TEST(Simulate, EndsWithItsBudgetAsTrainingDoes) {
  const Budget budgets[] = {{.samples = 30}, {.samples = 31},   {.samples = 48},
                            {.samples = 96}, {.hours = 0.0005}, {.hours = 2, .money = 0.004}};
  for (const Budget& budget : budgets) {
    for (const Remainder remainder : {Remainder::drop, Remainder::carry}) {
      SCOPED_TRACE(to_text(budget));
      TrainOptions options{.epochs = 3, .minibatch_size = 2, .learning_rate = 0.01};
      options.budget = budget;
      options.remainder = remainder;
      Trainer trainer(test::tiny_objective(), source_of_training(), options);
      const TrainResult result = trainer.fit();
      const auto source = source_of_training();
      const SimulationResult simulated = simulate(*source,
                                                  {.dataset_size = 48,
                                                   .minibatch_size = 2,
                                                   .cores = options.cores,
                                                   .remainder = remainder,
                                                   .epochs = 3},
                                                  {}, budget);
      EXPECT_THAT(result.stopped, testing::HasSubstr("reached"));
      EXPECT_EQ(simulated.reached, result.stopped);
      EXPECT_EQ(simulated.time, result.time);
      EXPECT_EQ(simulated.samples, result.samples);
      EXPECT_EQ(simulated.steps, result.steps);
      EXPECT_EQ(simulated.epochs, result.epochs);
    }
  }
}

TEST(Simulate, RefusesABudgetOfWhatItDoesNotKnow) {
  const auto error = [](const Budget& budget) {
    return test::error_of([&] {
      TraceSource source(Trace::constant(4));
      static_cast<void>(
          simulate(source, {.dataset_size = 100, .minibatch_size = 4, .epochs = 2}, {}, budget));
    });
  };
  EXPECT_THAT(error({.iterations = 3}), testing::HasSubstr("only training knows them"));
  EXPECT_THAT(error({.hours = 3}), testing::HasSubstr("a budget of hours 3 needs modelled time"));
  EXPECT_THAT(error({.samples = 0}), testing::HasSubstr("0 samples"));
}

TEST(Simulate, EndsWithItsSource) {
  TraceSource source(test::trace_of({4, 8}, TraceEnd::stop));
  const SimulationResult result =
      simulate(source, {.dataset_size = 100, .minibatch_size = 4, .epochs = 2});
  EXPECT_TRUE(result.ended);
  EXPECT_EQ(result.epochs, 0);
  EXPECT_EQ(result.steps, 2);
  EXPECT_EQ(result.time, std::nullopt);
}

TEST(Simulate, RefusesWhatTrainingDoes) {
  TraceSource source(test::trace_of({4, 6}));
  EXPECT_THAT(test::error_of([&] {
                static_cast<void>(
                    simulate(source, {.dataset_size = 100, .minibatch_size = 4, .epochs = 2}));
              }),
              testing::HasSubstr("batch size 6"));
}

}  // namespace
}  // namespace rubato
