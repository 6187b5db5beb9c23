// What is simulated is what training does, to the last digit.

#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/modelled_time.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

// Each device has a minibatch of two samples.
std::unique_ptr<ClockedSource> source_on(Availability availability, const ClusterModel& cluster) {
  return std::make_unique<ClockedSource>(
      std::move(availability),
      [](std::int64_t devices, const SourceProgress&) {
        return TraceStep{.batch_size = 2 * devices, .cores = devices};
      },
      ClockOptions{.cluster = cluster, .minibatch_size = 2, .max_batch = 12});
}

std::unique_ptr<ClockedSource> source_of_training() {
  return source_on(Availability({{0, 3}, {0.7, 5}, {1.1, 6}, {2.35, 1}, {2.9, 0}, {4.1, 4}}, 5,
                                "cloud", TraceEnd::cycle),
                   {.substep_seconds = 0.4,
                    .gradient_bytes = 1000,
                    .bandwidth_within_host = 1e5,
                    .restart_seconds = 0.3,
                    .price = {.constant = 1.5}});
}

// What training by these options plans, on so many samples.
PlanOptions plan_of(const TrainOptions& options, std::int64_t samples = 48) {
  return {.dataset_size = samples,
          .minibatch_size = options.minibatch_size,
          .cores = options.cores,
          .remainder = options.remainder,
          .epochs = options.epochs};
}

void expect_same(const SimulationResult& simulated, const TrainResult& trained) {
  EXPECT_EQ(simulated.time, trained.time);
  EXPECT_EQ(simulated.epochs, trained.epochs);
  EXPECT_EQ(simulated.steps, trained.steps);
  EXPECT_EQ(simulated.samples, trained.samples);
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
    expect_same(simulate(*source, plan_of(options),
                         [&](const SimulatedStep& step) { steps.push_back(step); }),
                result);
    ASSERT_EQ(steps.size(), recorder->steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const StepRecord& trained = recorder->steps[i];
      EXPECT_EQ(steps[i].epoch, trained.epoch);
      EXPECT_EQ(steps[i].plan.batch_size, trained.plan.batch_size);
      EXPECT_EQ(steps[i].plan.cores, trained.plan.cores);
      EXPECT_EQ(steps[i].plan.first_minibatch, trained.plan.first_minibatch);
      EXPECT_EQ(steps[i].time, trained.time);
    }
    EXPECT_EQ(result.epochs, 3);
    EXPECT_EQ(recorder->epochs.back().time, result.time);
    EXPECT_GT(result.time->restarts, 0);
    EXPECT_GT(result.time->idle_seconds, 0);
  }
}

// With Remainder::carry the last step has what is left of the samples, in the last minibatch, too.
TEST(Simulate, EndsWithTheLastSampleAsTrainingDoes) {
  const auto timed = [] {
    return std::make_unique<TimedSource>(
        std::make_unique<TraceSource>(test::trace_of({8, 12})),
        TimedSource::Options{.cluster = {.substep_seconds = 0.5}, .minibatch_size = 2, .cores = 2});
  };
  const auto compare = [](const auto& make, std::int64_t samples) {
    TrainOptions options{.epochs = 2, .minibatch_size = 2, .cores = 2};
    options.remainder = Remainder::carry;
    Trainer trainer(test::tiny_objective(samples), make(), options);
    const auto recorder = trainer.add_observer<test::Recorder>();
    const TrainResult result = trainer.fit();
    const auto source = make();
    SimulatedStep last;
    expect_same(simulate(*source, plan_of(options, samples),
                         [&](const SimulatedStep& step) { last = step; }),
                result);
    EXPECT_EQ(result.samples, 2 * samples);
    EXPECT_EQ(last.plan.batch_size, recorder->steps.back().plan.batch_size);
    EXPECT_EQ(last.time, recorder->steps.back().time);
    return result.time->seconds;
  };
  // By hand: 8, 12 and 2 of 22 samples are two, three and one turns of half a second.
  EXPECT_EQ(compare(timed, 11), 0.5 * (2 + 3 + 1));
  EXPECT_EQ(compare(timed, 10), 0.5 * (2 + 3));
  for (const std::int64_t samples : {46, 47, 48, 49}) {
    EXPECT_GT(compare(source_of_training, samples), 0);
  }
}

// A source hears what its steps had, not what it has asked for.
TEST(Simulate, TellsItsSourceWhatTheLastStepHad) {
  class Listening final : public StepSource {
   public:
    [[nodiscard]] std::optional<TraceStep> next(const SourceProgress&) const override {
      return TraceStep{.batch_size = 8};
    }
    void taken(const TraceStep& step, const SourceProgress&) override {
      heard.push_back(step.batch_size);
    }
    [[nodiscard]] std::int64_t max_batch() const override { return 8; }
    std::vector<std::int64_t> heard;
  };
  Listening source;
  const SimulationResult result = simulate(
      source,
      {.dataset_size = 11, .minibatch_size = 4, .remainder = Remainder::carry, .epochs = 1});
  EXPECT_EQ(result.samples, 11);
  EXPECT_THAT(source.heard, ElementsAre(8, 3));
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
    test::train_until(first, step);
    Trainer second = make([](TrainOptions&) {});
    second.load_state(first.state());
    EXPECT_EQ(second.result().time, first.result().time);
    EXPECT_EQ(second.fit().time, end);
    EXPECT_EQ(test::difference_of(second, whole), std::nullopt);
  }
}

// Devices are there for the first second of every thousand.
std::unique_ptr<ClockedSource> rare_source(TraceEnd end) {
  return source_on(Availability({{0, 3}, {1, 0}}, 1000, "rare", end), {.substep_seconds = 0.25});
}

struct Ended {
  TrainResult trained;
  SimulationResult simulated;
};

Ended ended(TraceEnd end, const Budget& budget) {
  TrainOptions options{.epochs = 3, .minibatch_size = 2};
  options.budget = budget;
  Trainer trainer(test::tiny_objective(), rare_source(end), options);
  const auto recorder = trainer.add_observer<test::Recorder>();
  const auto source = rare_source(end);
  Ended both{.trained = trainer.fit(),
             .simulated = simulate(*source, plan_of(options), {}, budget)};
  expect_same(both.simulated, both.trained);
  EXPECT_EQ(recorder->epochs.back().time, both.trained.time);
  // A state of it is of the same end.
  Trainer loaded(test::tiny_objective(), rare_source(end), options);
  loaded.load_state(trainer.state());
  EXPECT_EQ(loaded.result().stopped, both.trained.stopped);
  EXPECT_EQ(loaded.result().time, both.trained.time);
  EXPECT_EQ(loaded.result().out_of_devices, both.trained.out_of_devices);
  return both;
}

TEST(Simulate, EndsWithItsBudgetWhileThereIsNothingToTrainOn) {
  const auto [trained, simulated] = ended(TraceEnd::cycle, {.hours = 0.05});
  EXPECT_EQ(trained.stopped, "0.05 hours of the clock reached");
  EXPECT_FALSE(trained.out_of_devices);
  EXPECT_EQ(simulated.reached, trained.stopped);
  EXPECT_EQ(simulated.ended, SourceEnd::Cause::budget);
  EXPECT_EQ(trained.time->seconds, 180);
  EXPECT_EQ(trained.time->idle_seconds, 179);
  EXPECT_EQ(trained.samples, 24);
}

TEST(Simulate, IsOutOfDevicesAsTrainingIs) {
  const auto [trained, simulated] = ended(TraceEnd::stop, {});
  EXPECT_EQ(trained.stopped, "out of devices");
  EXPECT_TRUE(trained.out_of_devices);
  EXPECT_EQ(simulated.ended, SourceEnd::Cause::out_of_devices);
  EXPECT_EQ(simulated.reached, "");
  EXPECT_EQ(trained.time->seconds, 1000);
  EXPECT_EQ(trained.samples, 24);
}

// A run that has ended with an epoch goes on with a longer availability, from its last step.
TEST(Simulate, GoesOnWhereThereAreDevicesAgain) {
  const auto trainer = [](TraceEnd end) {
    return Trainer(test::tiny_objective(24), rare_source(end), {.epochs = 2, .minibatch_size = 2});
  };
  Trainer first = trainer(TraceEnd::stop);
  EXPECT_EQ(first.fit().stopped, "out of devices");
  EXPECT_EQ(first.result().epochs, 1);
  Trainer second = trainer(TraceEnd::cycle);
  second.load_state(first.state());
  EXPECT_EQ(second.result().stopped, "");
  EXPECT_EQ(second.result().time->seconds, 1);
  Trainer whole = trainer(TraceEnd::cycle);
  EXPECT_EQ(second.fit().time, whole.fit().time);
  EXPECT_EQ(test::difference_of(second, whole), std::nullopt);
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
      const SimulationResult simulated = simulate(*source, plan_of(options), {}, budget);
      expect_same(simulated, result);
      EXPECT_THAT(result.stopped, HasSubstr("reached"));
      EXPECT_EQ(simulated.reached, result.stopped);
    }
  }
}

class PauseAfterEpochs final : public Observer {
 public:
  void on_epoch(Training& training, const EpochRecord&) override { training.pause(); }
};

// A step of 24 samples, every other one, completes two epochs of 10 at once.
TEST(Simulate, CountsAllEpochsOfTheStepThatReachesTheBudgetAsTrainingDoes) {
  const std::int64_t epochs_by_budget[][2] = {{4, 0}, {5, 2}, {28, 2}, {29, 3}, {33, 5}, {60, 6}};
  for (const auto& [samples, epochs] : epochs_by_budget) {
    SCOPED_TRACE(samples);
    const Budget budget{.samples = samples};
    const Trace trace = test::trace_of({4, 24});
    TrainOptions options{.epochs = 9, .minibatch_size = 2, .learning_rate = 0.01};
    options.budget = budget;
    options.remainder = Remainder::carry;
    TraceSource source(trace);
    const SimulationResult simulated = simulate(source, plan_of(options, 10), {}, budget);
    EXPECT_EQ(simulated.epochs, epochs);
    Trainer whole(test::tiny_objective(10), trace, options);
    const auto all = whole.add_observer<test::Recorder>();
    EXPECT_EQ(whole.fit().epochs, epochs);
    EXPECT_EQ(whole.result().samples, simulated.samples);
    ASSERT_EQ(all->epochs.size(), static_cast<std::size_t>(epochs > 0 ? epochs : 1));
    EXPECT_EQ(all->epochs.back().whole, epochs > 0);
    // In pieces that end between two of them.
    State state = Trainer(test::tiny_objective(10), trace, options).state();
    for (std::size_t seen = 0, before = 1; seen != before;) {
      Trainer part(test::tiny_objective(10), trace, options);
      const auto recorder = part.add_observer<test::Recorder>();
      part.add_observer<PauseAfterEpochs>();
      part.load_state(state);
      EXPECT_LE(part.fit().epochs, epochs);
      before = seen;
      seen += recorder->epochs.size();
      state = part.state();
      if (seen == before) {
        EXPECT_EQ(part.result().epochs, epochs);
      }
    }
  }
}

TEST(Simulate, RefusesABudgetOfWhatItDoesNotKnow) {
  const auto error = [](const Budget& budget) {
    return error_of([&] {
      TraceSource source(Trace::constant(4));
      return simulate(source, {.dataset_size = 100, .minibatch_size = 4, .epochs = 2}, {}, budget);
    });
  };
  EXPECT_THAT(error({.iterations = 3}), HasSubstr("only training knows them"));
  EXPECT_THAT(error({.hours = 3}), HasSubstr("a budget of hours 3 needs modelled time"));
  EXPECT_THAT(error({.samples = 0}), HasSubstr("0 samples"));
}

TEST(Simulate, EndsWithItsSource) {
  TraceSource source(test::trace_of({4, 8}, TraceEnd::stop));
  const SimulationResult result =
      simulate(source, {.dataset_size = 100, .minibatch_size = 4, .epochs = 2});
  EXPECT_EQ(result.ended, SourceEnd::Cause::exhausted);
  EXPECT_EQ(result.epochs, 0);
  EXPECT_EQ(result.steps, 2);
  EXPECT_EQ(result.time, std::nullopt);
}

TEST(Simulate, RefusesWhatTrainingDoes) {
  TraceSource source(test::trace_of({4, 6}));
  EXPECT_THAT(error_of([&] {
                return simulate(source, {.dataset_size = 100, .minibatch_size = 4, .epochs = 2});
              }),
              HasSubstr("batch size 6"));
}

}  // namespace
}  // namespace rubato
