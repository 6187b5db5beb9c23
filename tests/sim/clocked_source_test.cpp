#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/modelled_time.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

Availability devices(const std::vector<AvailabilityChange>& changes, double length = 1000,
                     TraceEnd end = TraceEnd::stop) {
  return Availability(changes, length, "cloud", end);
}

// Each device has one minibatch of 4 samples, at least `fewest` of them; a substep takes a second.
ClockedSource clocked(Availability availability, ClockOptions options = {},
                      std::int64_t fewest = 1) {
  options.cluster.substep_seconds = 1;
  options.minibatch_size = 4;
  options.max_batch = 4000;
  return {std::move(availability),
          [fewest](std::int64_t count, const SourceProgress&) -> std::optional<TraceStep> {
            if (count < fewest) return std::nullopt;
            return TraceStep{.batch_size = 4 * count, .cores = count};
          },
          options};
}

struct Taken {
  std::vector<std::int64_t> cores;
  std::vector<ClockTime> times;
};

Taken take(ClockedSource& source, std::int64_t steps) {
  Taken taken;
  for (std::int64_t i = 0; i < steps; ++i) {
    const SourceProgress progress{.step = StepIndex{i}, .epoch = {}};
    const auto step = source.next(progress);
    if (!step) break;
    taken.cores.push_back(*step->cores);
    taken.times.push_back(*source.time_after(progress));
    source.taken(*step, progress);
    EXPECT_EQ(source.time(), taken.times.back());
  }
  return taken;
}

TEST(ClockedSource, TakesWhatThereIsWhenAStepBegins) {
  ClockedSource source =
      clocked(devices({{0, 2}, {1.5, 3}, {3, 5}}), {.cluster = {.price = {.constant = 7200}}});
  const Taken taken = take(source, 4);
  // Those that come in the middle of a step wait for its end.
  EXPECT_EQ(taken.cores, (std::vector<std::int64_t>{2, 2, 3, 5}));
  EXPECT_EQ(taken.times.back(), (ClockTime{.seconds = 4, .core_seconds = 12, .money = 24}));
}

TEST(ClockedSource, LosesTheStepThatACoreLeaves) {
  ClockedSource source =
      clocked(devices({{0, 4}, {1.25, 3}, {8, 2}}), {.cluster = {.restart_seconds = 10}});
  const Taken taken = take(source, 2);
  // A quarter of a second of the second step is lost, the restart holds those of the four cores
  // that are left, three and later two.
  EXPECT_EQ(taken.cores, (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(taken.times[0].seconds, 1);
  EXPECT_EQ(taken.times[1].seconds, 1.25 + 10 + 1);
  EXPECT_EQ(taken.times[1].lost_seconds, 0.25);
  EXPECT_EQ(taken.times[1].restarts, 1);
  EXPECT_EQ(taken.times[1].core_seconds, 4 + 4 * 0.25 + 3 * 6.75 + 2 * 3.25 + 2);
}

// By hand: of four cores one leaves after a quarter of a second. It comes back a second later, and
// others with it, in a restart of ten: what is paid are the three that have stayed.
TEST(ClockedSource, PaysInARestartWhoHasStayed) {
  const ClockOptions options{.cluster = {.restart_seconds = 10}};
  ClockedSource back = clocked(devices({{0, 4}, {0.25, 3}, {1.25, 4}, {2.25, 9}}), options);
  const Taken taken = take(back, 1);
  EXPECT_EQ(taken.cores, (std::vector<std::int64_t>{9}));
  EXPECT_EQ(taken.times[0], (ClockTime{.seconds = 0.25 + 10 + 1,
                                       .core_seconds = 4 * 0.25 + 3 * 10 + 9,
                                       .lost_seconds = 0.25,
                                       .restart_seconds = 10,
                                       .restarts = 1}));
  // All of them go, and nobody who comes was there.
  ClockedSource gone = clocked(devices({{0, 4}, {0.25, 0}, {1.25, 4}}), options);
  EXPECT_EQ(take(gone, 1).times[0].core_seconds, 4 * 0.25 + 4);
}

TEST(ClockedSource, WaitsWhileThereIsNothing) {
  for (const OnIdle on_idle : {OnIdle::pause, OnIdle::checkpoint}) {
    ClockedSource source = clocked(devices({{0, 0}, {2, 1}, {3, 0}, {20, 2}}),
                                   {.cluster = {.restart_seconds = 5}, .on_idle = on_idle});
    const Taken taken = take(source, 2);
    const double restart = on_idle == OnIdle::pause ? 0 : 5;
    ASSERT_EQ(taken.times.size(), 2U);
    EXPECT_EQ(taken.times[0].seconds, 3);
    EXPECT_EQ(taken.times[0].idle_seconds, 2);
    EXPECT_EQ(taken.times[1].seconds, 20 + restart + 1);
    EXPECT_EQ(taken.times[1].idle_seconds, 2 + 17);
    EXPECT_EQ(taken.times[1].restarts, on_idle == OnIdle::pause ? 0 : 1);
    EXPECT_EQ(taken.times[1].restart_seconds, restart);
    EXPECT_EQ(taken.times[1].core_seconds, 1 + 2 * restart + 2);
  }
}

TEST(ClockedSource, WaitsForAsManyDevicesAsThePolicyWants) {
  ClockedSource source = clocked(devices({{0, 2}, {7, 3}}), {}, 3);
  const Taken taken = take(source, 1);
  EXPECT_EQ(taken.cores, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(taken.times[0].idle_seconds, 7);
}

TEST(ClockedSource, CountsCheckpoints) {
  ClockedSource source =
      clocked(devices({{0, 1}}), {.cluster = {.checkpoint_steps = 2, .checkpoint_seconds = 0.5}});
  EXPECT_EQ(take(source, 5).times.back().seconds, 5 + 2 * 0.5);
}

TEST(ClockedSource, EndsWithItsAvailability) {
  ClockedSource source = clocked(devices({{0, 1}}, 3));
  EXPECT_EQ(take(source, 10).times.size(), 3U);
  ClockedSource cycling = clocked(devices({{0, 1}, {2, 2}}, 4, TraceEnd::cycle));
  EXPECT_EQ(take(cycling, 8).cores, (std::vector<std::int64_t>{1, 1, 2, 2, 1, 1, 2, 2}));
}

SourceEnd end_after(ClockedSource& source, std::int64_t steps, const Budget& budget = {}) {
  take(source, steps);
  const SourceProgress progress{.step = StepIndex{steps}, .epoch = {}, .budget = budget};
  EXPECT_EQ(source.next(progress), std::nullopt);
  EXPECT_EQ(source.time_after(progress), std::nullopt);
  return source.end(progress);
}

TEST(ClockedSource, SaysThatThereAreNoDevicesAnyMore) {
  // The third step is lost where the availability ends.
  ClockedSource lost = clocked(devices({{0, 2}}, 2.5));
  const SourceEnd end = end_after(lost, 2);
  EXPECT_EQ(end.cause, SourceEnd::Cause::out_of_devices);
  EXPECT_EQ(end.time,
            (ClockTime{.seconds = 2.5, .core_seconds = 5, .lost_seconds = 0.5, .restarts = 1}));
  // They leave before it ends, or are too few for ever.
  ClockedSource left = clocked(devices({{0, 1}, {1, 0}}, 7));
  EXPECT_EQ(end_after(left, 1).time,
            (ClockTime{.seconds = 7, .core_seconds = 1, .idle_seconds = 6}));
  ClockedSource few = clocked(devices({{0, 3}, {1, 2}}, 7, TraceEnd::hold), {}, 3);
  const SourceEnd held = end_after(few, 1);
  EXPECT_EQ(held.cause, SourceEnd::Cause::out_of_devices);
  EXPECT_EQ(held.time, (ClockTime{.seconds = 1, .core_seconds = 3}));
}

// 0.001 hours are 3.6 seconds.
TEST(ClockedSource, EndsWithTheHoursOfItsBudget) {
  const Budget budget{.hours = 0.001};
  const auto end_of = [&](const std::vector<AvailabilityChange>& changes, TraceEnd end,
                          std::int64_t fewest = 1) {
    ClockedSource source =
        clocked(devices(changes, 100'000, end), {.cluster = {.restart_seconds = 2}}, fewest);
    const SourceEnd found = end_after(source, 1, budget);
    EXPECT_EQ(found.cause, SourceEnd::Cause::budget);
    return *found.time;
  };
  for (const TraceEnd end : {TraceEnd::stop, TraceEnd::error, TraceEnd::cycle}) {
    EXPECT_EQ(end_of({{0, 1}, {1, 0}, {90'000, 1}}, end),
              (ClockTime{.seconds = 3.6, .core_seconds = 1, .idle_seconds = 2.6}));
  }
  // Too few for ever.
  EXPECT_EQ(end_of({{0, 2}, {1, 1}}, TraceEnd::hold, 2),
            (ClockTime{.seconds = 3.6, .core_seconds = 2, .idle_seconds = 2.6}));
  // In a restart.
  const ClockTime restarting = end_of({{0, 3}, {1.75, 2}}, TraceEnd::hold);
  EXPECT_EQ(restarting.seconds, 3.6);
  EXPECT_EQ(restarting.lost_seconds, 0.75);
  EXPECT_NEAR(restarting.restart_seconds, 1.85, 1e-12);
  EXPECT_NEAR(restarting.core_seconds, 3 + 3 * 0.75 + 2 * 1.85, 1e-12);
  // In the restart behind a time without devices.
  ClockedSource idle = clocked(devices({{0, 1}, {1, 0}, {3, 1}}, 100, TraceEnd::hold),
                               {.cluster = {.restart_seconds = 2}, .on_idle = OnIdle::checkpoint});
  const ClockTime resuming = *end_after(idle, 1, budget).time;
  EXPECT_EQ(resuming.seconds, 3.6);
  EXPECT_EQ(resuming.idle_seconds, 2);
  EXPECT_NEAR(resuming.restart_seconds, 0.6, 1e-12);
  // In an attempt that is lost later.
  const ClockTime losing = end_of({{0, 1}, {1, 0}, {3, 2}, {3.75, 1}}, TraceEnd::hold);
  EXPECT_EQ(losing.seconds, 3.6);
  EXPECT_NEAR(losing.lost_seconds, 0.6, 1e-12);
  EXPECT_NEAR(losing.core_seconds, 1 + 2 * 0.6, 1e-12);
  EXPECT_EQ(losing.restarts, 0);
}

TEST(ClockedSource, EndsWithTheMoneyOfItsBudget) {
  const ClockOptions options{.cluster = {.restart_seconds = 2, .price = {.constant = 3600}}};
  // 3 in the first step, 1.5 in the attempt that is lost, and 2 in a second of the restart.
  ClockedSource source = clocked(devices({{0, 3}, {1.5, 2}}, 100, TraceEnd::hold), options);
  const SourceEnd end = end_after(source, 1, {.money = 6.5});
  EXPECT_EQ(end.cause, SourceEnd::Cause::budget);
  EXPECT_EQ(end.time, (ClockTime{.seconds = 2.5,
                                 .core_seconds = 6.5,
                                 .money = 6.5,
                                 .lost_seconds = 0.5,
                                 .restart_seconds = 1,
                                 .restarts = 1}));
  // 3 in the first step, 1.5 in the attempt, 1 in half a second of the restart with two of the
  // cores, and 0.5 in another half with one.
  ClockedSource fewer = clocked(devices({{0, 3}, {1.5, 2}, {2, 1}}, 100, TraceEnd::hold), options);
  EXPECT_EQ(end_after(fewer, 1, {.money = 6}).time, (ClockTime{.seconds = 2.5,
                                                               .core_seconds = 6,
                                                               .money = 6,
                                                               .lost_seconds = 0.5,
                                                               .restart_seconds = 1,
                                                               .restarts = 1}));
  // Waiting costs nothing.
  ClockedSource waiting = clocked(devices({{0, 3}, {1, 0}, {50, 1}}, 100, TraceEnd::hold), options);
  take(waiting, 1);
  EXPECT_NE(waiting.next({.step = StepIndex{1}, .epoch = {}, .budget = {.money = 3.001}}),
            std::nullopt);
}

// A step that reaches the budget is taken; and what comes behind it can be asked for.
TEST(ClockedSource, EndsWithTheStepThatReachesItsBudget) {
  ClockedSource source = clocked(devices({{0, 1}, {4, 0}, {9, 1}}, 10, TraceEnd::cycle));
  SourceProgress progress{.step = {}, .epoch = {}, .budget = {.hours = 0.001}};
  for (std::int64_t i = 0; i < 5; ++i) {
    progress.step = StepIndex{i};
    const auto step = source.next(progress);
    ASSERT_TRUE(step);
    source.taken(*step, progress);
  }
  EXPECT_EQ(source.time().seconds, 10);
}

TEST(ClockedSource, TakesAsLongAsWhatIsLeftOfTheSamples) {
  const ClockOptions options{
      .cluster = {.substep_seconds = 1}, .minibatch_size = 4, .max_batch = 32};
  // Eight minibatches on three cores take three turns, five of them two, and one of them one.
  for (const auto& [left, seconds] :
       {std::pair(33, 3.0), {32, 3.0}, {20, 2.0}, {17, 2.0}, {1, 1.0}}) {
    const ClockedSource eight(
        devices({{0, 3}}),
        [](std::int64_t, const SourceProgress&) { return TraceStep{.batch_size = 32}; }, options);
    EXPECT_EQ(eight.time_after({.step = {}, .epoch = {}, .samples_left = left})->seconds, seconds);
  }
}

TEST(ClockedSource, GivesUpWhereNoStepCanEnd) {
  ClockedSource source = clocked(devices({{0, 2}, {0.5, 1}}, 0.75, TraceEnd::cycle), {}, 2);
  EXPECT_THAT(error_of([&] { return source.next({}); }),
              HasSubstr("no step has ended in 100000 attempts"));
}

// A step that no change of a cycle disturbs, however long it lasts.
TEST(ClockedSource, LooksThroughACycleOnce) {
  ClockedSource source =
      clocked(Availability({{0, 2}, {0.001, 3}}, 0.002, "flicker", TraceEnd::cycle),
              {.cluster = {.update_seconds = 1e9}});
  EXPECT_EQ(take(source, 2).times.back().seconds, 2 * (1 + 1e9));
}

TEST(ClockedSource, EndsWithTheTimesThatAnAvailabilityKnows) {
  ClockOptions options;
  options.cluster.update_seconds = 2e9;
  ClockedSource source = clocked(devices({{0, 2}}, 1000, TraceEnd::hold), options);
  EXPECT_EQ(error_of([&] { take(source, 3); }),
            "cloud at 4e+09 s, step 3 of the run: the clock has reached 4e+09 s; accepted: up to "
            "3e+09 s");
  options.cluster.update_seconds = 0;
  options.cluster.restart_seconds = 1e10;
  ClockedSource restarting = clocked(devices({{0, 2}, {0.5, 1}}, 1000, TraceEnd::cycle), options);
  EXPECT_THAT(error_of([&] { take(restarting, 1); }), HasSubstr("the clock has reached"));
}

TEST(ClockedSource, MayNotEndWhereThatIsAnError) {
  ClockedSource source = clocked(devices({{0, 2}}, 2.5, TraceEnd::error));
  EXPECT_EQ(error_of([&] { take(source, 9); }),
            "cloud at 2 s, step 3 of the run: the availability ends at 2.5 s, and there is more to "
            "train; accepted: a longer one, or --on-trace-end hold, cycle or stop");
}

TEST(ClockedSource, IsRefusedWhatIsNoStep) {
  const auto error = [](const TraceStep& step) {
    const ClockedSource source(devices({{0, 8}}),
                               [&](std::int64_t, const SourceProgress&) { return step; },
                               {.policy = "mine", .max_batch = 64});
    return error_of([&] { return source.next({}); });
  };
  EXPECT_EQ(error({.batch_size = 32, .cores = 0}),
            "cloud at 0 s, step 1 of the run: the policy makes a step of 32 samples on 0 cores of "
            "8 devices; accepted: a minibatch of 32 at least, on one core at least");
  EXPECT_THAT(error({.batch_size = 31}), HasSubstr("31 samples on 8 cores"));
  EXPECT_EQ(error({.batch_size = 32}), "no error");
}

TEST(ClockedSource, TakesOnlyWhatItHasGiven) {
  ClockedSource source = clocked(devices({{0, 1}}));
  EXPECT_EQ(error_of([&] { source.taken({.batch_size = 4}, {}); }),
            "taken() was called without next(); accepted: after it");
}

TEST(ClockedSource, GoesOnFromAState) {
  ClockOptions options;
  options.cluster.restart_seconds = 3;
  const auto make = [&] {
    return clocked(devices({{0, 4}, {1.25, 3}, {8, 0}, {9, 2}}, 20, TraceEnd::cycle), options);
  };
  ClockedSource whole = make();
  const Taken all = take(whole, 12);
  ClockedSource first = make();
  take(first, 5);
  const State state = state_of(first, 5);
  ClockedSource second = make();
  load_state(second, state, 5);
  EXPECT_EQ(second.time(), all.times[4]);
  const Taken rest = take(second, 7);
  EXPECT_EQ(rest.times.back(), all.times.back());
  options.cluster.restart_seconds = 4;
  ClockedSource other = make();
  EXPECT_THAT(error_of([&] { load_state(other, state, 5); }),
              HasSubstr("another cluster or policy"));
}

TEST(ClockedSource, IsBoundToTheAvailabilityOfTheStepsTaken) {
  ClockedSource first = clocked(devices({{0, 2}, {5, 3}}));
  take(first, 4);
  const State state = state_of(first, 4);
  ClockedSource later = clocked(devices({{0, 2}, {5, 1}}));
  load_state(later, state, 4);
  ClockedSource earlier = clocked(devices({{0, 2}, {3.5, 3}}));
  EXPECT_THAT(error_of([&] { load_state(earlier, state, 4); }),
              HasSubstr("cloud: the devices until 4 s are not those"));
}

// What a step has begun with that was shorter than the clock can show, though nothing else was
// taken of it: at four seconds, the clock of such a step still says four.
TEST(ClockedSource, IsBoundToTheDevicesOfTheVerySecondThatItHasComeTo) {
  const auto instant = [](const std::vector<AvailabilityChange>& changes, TraceEnd end) {
    ClockOptions options;
    options.cluster.substep_seconds = 1e-20;
    options.cluster.checkpoint_steps = 2;
    options.cluster.checkpoint_seconds = 4;
    options.minibatch_size = 4;
    options.max_batch = 4000;
    return ClockedSource(
        devices(changes, 4, end),
        [](std::int64_t count, const SourceProgress&) {
          return TraceStep{.batch_size = 4 * count};
        },
        options);
  };
  // The second step takes four seconds, and the third, of the next round of the cycle, none.
  ClockedSource cycling = instant({{0, 2}, {0.5, 3}}, TraceEnd::cycle);
  EXPECT_EQ(take(cycling, 3).cores, (std::vector<std::int64_t>{2, 2, 2}));
  EXPECT_EQ(cycling.time().seconds, 4);
  const State state = state_of(cycling, 3);
  EXPECT_THAT(error_of([&] {
                ClockedSource holding = instant({{0, 2}, {0.5, 3}}, TraceEnd::hold);
                load_state(holding, state, 3);
              }),
              HasSubstr("the devices until 4 s are not those that the state has used"));
  // It waits for two seconds, and takes those that are there then.
  ClockedSource waiting = instant({{0, 0}, {2, 3}}, TraceEnd::stop);
  EXPECT_EQ(take(waiting, 1).cores, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(waiting.time().seconds, 2);
  const State waited = state_of(waiting, 1);
  EXPECT_THAT(error_of([&] {
                ClockedSource other = instant({{0, 0}, {2, 5}}, TraceEnd::stop);
                load_state(other, waited, 1);
              }),
              HasSubstr("the devices until 2 s are not those that the state has used"));
}

TEST(ClockedSource, IsRefusedWithoutAPolicy) {
  EXPECT_THAT(error_of([] {
                ClockedSource source(devices({{0, 1}}), {}, {});
              }),
              HasSubstr("the clock has no policy"));
}

// Notes what it hears, takes so many cores less than are offered, and a minibatch for each.
class Modest final : public BatchPolicy {
 public:
  explicit Modest(std::int64_t less, std::int64_t samples = 4) : less_(less), samples_(samples) {}

  [[nodiscard]] std::string name() const override { return "modest"; }
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& progress) const override {
    const std::int64_t cores = *offered.cores - less_;
    return {.step = {.batch_size = samples_ * cores, .cores = cores},
            .inputs = {{"offered", static_cast<double>(*offered.cores)},
                       {"step", static_cast<double>(progress.step.value())}}};
  }
  void observe(const ObservedStep& step) override { observed.push_back(step); }
  [[nodiscard]] std::int64_t max_batch(std::int64_t offered) const override { return 2 * offered; }
  [[nodiscard]] bool needs_noise_scale() const override { return true; }
  [[nodiscard]] bool needs_seconds() const override { return true; }

  std::vector<ObservedStep> observed;

 private:
  std::int64_t less_;
  std::int64_t samples_;
};

ClockedSource by_modest(Availability availability, ClockOptions options, std::int64_t less,
                        std::int64_t samples = 4) {
  options.cluster.substep_seconds = 1;
  options.minibatch_size = 4;
  options.max_batch = 4000;
  return {std::move(availability),
          [](std::int64_t count, const SourceProgress&) {
            return TraceStep{.batch_size = 4 * count, .cores = count};
          },
          options, std::make_unique<Modest>(less, samples)};
}

TEST(ClockedSource, TakesWhatItsPolicyDecides) {
  // One core of the five may go, which changes nothing; then two of those at work go.
  ClockedSource source = by_modest(devices({{0, 5}, {1.5, 4}, {2.25, 2}, {30, 8}}),
                                   {.cluster = {.restart_seconds = 10}}, 1);
  const Taken taken = take(source, 2);
  EXPECT_EQ(taken.cores, (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(taken.times[0], (ClockTime{.seconds = 1, .core_seconds = 4}));
  EXPECT_EQ(taken.times[1], (ClockTime{.seconds = 2, .core_seconds = 8}));
  // As it was decided at the beginning, three are at work, and when there are two it begins anew.
  const Taken rest = take(source, 1);
  EXPECT_EQ(rest.cores, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(rest.times[0].lost_seconds, 0.25);
  EXPECT_EQ(rest.times[0].seconds, 2.25 + 10 + 1);
  EXPECT_EQ(rest.times[0].core_seconds, 8 + 0.25 * 3 + 10 * 2 + 1);
  EXPECT_EQ(source.max_batch(), 8000);
  EXPECT_TRUE(source.needs_noise_scale());
}

TEST(ClockedSource, TellsItsPolicyHowLongStepsTook) {
  ClockOptions options;
  options.cluster.restart_seconds = 10;
  options.cluster.checkpoint_steps = 1;
  options.cluster.checkpoint_seconds = 3;
  options.cluster.update_seconds = 0.125;
  options.cluster.substep_seconds = 1;
  options.minibatch_size = 4;
  options.max_batch = 4000;
  auto policy = std::make_unique<Modest>(0, 8);
  const Modest& modest = *policy;
  ClockedSource source(
      devices({{0, 0}, {2, 5}, {3, 4}}),
      [](std::int64_t count, const SourceProgress&) {
        return TraceStep{.batch_size = 4 * count, .cores = count};
      },
      options, std::move(policy));
  SourceProgress progress;
  const TraceStep step = *source.next(progress);
  EXPECT_EQ(source.decision_inputs(progress),
            (std::vector<NamedNumber>{{"offered", 4}, {"step", 0}}));
  EXPECT_EQ(source.time_after(progress)->seconds, 3 + 10 + 2.125 + 3);
  progress.samples = 32;
  source.taken(step, progress);
  ASSERT_EQ(modest.observed.size(), 1U);
  EXPECT_EQ(modest.observed[0].step, (TraceStep{.batch_size = 32, .cores = 4}));
  EXPECT_EQ(modest.observed[0].seconds, 2.125) << "neither waiting, nor what was lost, nor written";
  EXPECT_EQ(modest.observed[0].after.samples, 32);
}

TEST(ClockedSource, IsBoundToItsPolicy) {
  ClockedSource first = by_modest(devices({{0, 2}}), {}, 1);
  take(first, 3);
  const State state = state_of(first, 3);
  ClockedSource same = by_modest(devices({{0, 2}}), {}, 1);
  load_state(same, state, 3);
  EXPECT_EQ(same.time(), first.time());
  ClockedSource without = clocked(devices({{0, 2}}));
  EXPECT_THAT(error_of([&] { load_state(without, state, 3); }),
              HasSubstr("another cluster or policy"));
  const State other = state_of(without, 0);
  EXPECT_THAT(error_of([&] { load_state(same, other, 0); }),
              HasSubstr("another policy, none; accepted: the same, not modest"));
}

TEST(ClockedSource, RefusesWhatItsPolicyCannotDecide) {
  const auto error = [](std::int64_t less, std::int64_t samples) {
    const ClockedSource source = by_modest(devices({{0, 2}}), {}, less, samples);
    return error_of([&] { return source.next({}); });
  };
  EXPECT_EQ(error(1, 6),
            "cloud at 0 s, step 1 of the run: the policy modest decides on 6 samples; accepted: a "
            "multiple of the minibatch size, 4");
  EXPECT_THAT(error(-1, 4), HasSubstr("on 3 cores; accepted: a minibatch at least, on 1 to 2"));
  EXPECT_THAT(error(2, 4), HasSubstr("decides on 0 samples on 0 cores"));
}

}  // namespace
}  // namespace rubato
