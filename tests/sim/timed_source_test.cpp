// A trace in modelled time.

#include <memory>
#include <utility>

#include <gmock/gmock.h>

#include <rubato/sim/clocked_source.hpp>
#include <rubato/sim/timed_source.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

// A substep takes a second, a step half a second besides, and a core costs 3600 in an hour.
TimedSource::Options timed_options() {
  return {.cluster = {.substep_seconds = 1, .update_seconds = 0.5, .price = 3600},
          .minibatch_size = 4,
          .cores = 2};
}

TimedSource timed(const std::vector<TraceStep>& steps, const TimedSource::Options& options) {
  return {std::make_unique<TraceSource>(Trace(steps, TraceEnd::stop, "three.csv")), options};
}

// 3 minibatches on 1 core, 6 on 3, 5 on those of the options.
const std::vector<TraceStep> kThreeSteps{{12, 1}, {24, 3}, {20, std::nullopt}};

SourceProgress at_step(std::int64_t step) {
  return {.step = StepIndex{step}, .epoch = {}};
}

TEST(TimedSource, TakesAsLongAsTheClusterDoes) {
  TimedSource source = timed(kThreeSteps, timed_options());
  EXPECT_TRUE(source.has_clock());
  EXPECT_EQ(source.max_batch(), 24);
  EXPECT_EQ(source.trace()->length(), 3);
  EXPECT_EQ(source.where(StepIndex{1}), source.trace()->where(StepIndex{1}));
  const ClockTime expected[] = {{.seconds = 3.5, .core_seconds = 3.5, .money = 3.5},
                                {.seconds = 6, .core_seconds = 11, .money = 11},
                                {.seconds = 9.5, .core_seconds = 18, .money = 18}};
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto step = source.next(at_step(i));
    ASSERT_TRUE(step);
    EXPECT_EQ(*step, kThreeSteps.at(static_cast<std::size_t>(i)));
    EXPECT_EQ(source.time_after(at_step(i)), expected[i]);
    EXPECT_EQ(source.time_after(at_step(i)), expected[i]) << "asked again";
    source.taken(*step, at_step(i + 1));
  }
  EXPECT_EQ(source.next(at_step(3)), std::nullopt);
  EXPECT_EQ(source.time_after(at_step(3)), std::nullopt);
}

TEST(TimedSource, WritesCheckpoints) {
  TimedSource::Options options = timed_options();
  options.cluster.checkpoint_steps = 2;
  options.cluster.checkpoint_seconds = 10;
  TimedSource source = timed(kThreeSteps, options);
  source.taken(kThreeSteps[0], at_step(1));
  EXPECT_EQ(source.time_after(at_step(1))->seconds, 16);
  source.taken(kThreeSteps[1], at_step(2));
  EXPECT_EQ(source.time_after(at_step(2))->seconds, 19.5);
}

TEST(TimedSource, GoesOnFromAState) {
  TimedSource::Options options = timed_options();
  options.cluster.checkpoint_steps = 2;
  options.cluster.checkpoint_seconds = 10;
  TimedSource whole = timed(kThreeSteps, options);
  whole.taken(kThreeSteps[0], at_step(1));
  State state;
  whole.save(state, 1);
  TimedSource again = timed(kThreeSteps, options);
  again.load(state, 1);
  EXPECT_EQ(again.time_after(at_step(1)), whole.time_after(at_step(1)));

  options.cluster.restart_seconds = 1;
  TimedSource other = timed(kThreeSteps, options);
  EXPECT_THAT(test::error_of([&] { other.load(state, 1); }),
              testing::HasSubstr("another cluster or policy"));
  options = timed_options();
  options.cluster.checkpoint_steps = 2;
  options.cluster.checkpoint_seconds = 10;
  options.cores = 3;
  TimedSource wider = timed(kThreeSteps, options);
  EXPECT_THAT(test::error_of([&] { wider.load(state, 1); }),
              testing::HasSubstr("another cluster or policy"));
  TimedSource others = timed({{8, 1}}, timed_options());
  EXPECT_THAT(test::error_of([&] { others.load(state, 1); }), testing::HasSubstr("three.csv"))
      << "what its own source refuses";
}

TEST(TimedSource, PriceIsNoPartOfTheState) {
  TimedSource whole = timed(kThreeSteps, timed_options());
  whole.taken(kThreeSteps[0], at_step(1));
  State state;
  whole.save(state, 1);
  TimedSource::Options dear = timed_options();
  dear.cluster.price *= 2;
  TimedSource again = timed(kThreeSteps, dear);
  again.load(state, 1);
  EXPECT_EQ(again.time_after(at_step(1))->money, 22) << "of all the time";
}

TEST(TimedSource, RefusesWhatIsNoClock) {
  const auto error = [](std::unique_ptr<StepSource> source, const TimedSource::Options& options) {
    return test::error_of([&] { TimedSource{std::move(source), options}; });
  };
  const auto trace = [] { return std::make_unique<TraceSource>(Trace::constant(8)); };
  EXPECT_THAT(error(nullptr, {}), testing::HasSubstr("the clock has no steps"));
  EXPECT_THAT(error(std::make_unique<TimedSource>(trace(), TimedSource::Options{}), {}),
              testing::HasSubstr("has a clock already"));
  EXPECT_THAT(error(trace(), {.minibatch_size = 0}), testing::HasSubstr("at least 1 of each"));
  EXPECT_THAT(error(trace(), {.cores = 0}), testing::HasSubstr("at least 1 of each"));
  EXPECT_THAT(error(trace(), {.cluster = {.substep_seconds = 0}}),
              testing::HasSubstr("substep is 0"));
}

}  // namespace
}  // namespace rubato
