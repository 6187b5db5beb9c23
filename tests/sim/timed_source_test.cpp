// A trace in modelled time.

#include <algorithm>
#include <memory>
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

// A substep takes a second, a step half a second besides, and a core costs 3600 in an hour.
TimedSource::Options timed_options() {
  return {.cluster = {.substep_seconds = 1, .update_seconds = 0.5, .price = {.constant = 3600}},
          .minibatch_size = 4,
          .cores = 2};
}

// With a checkpoint of ten seconds after so many steps.
TimedSource::Options with_checkpoints(std::int64_t steps) {
  TimedSource::Options options = timed_options();
  options.cluster.checkpoint_steps = steps;
  options.cluster.checkpoint_seconds = 10;
  return options;
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
  TimedSource source = timed(kThreeSteps, with_checkpoints(2));
  source.taken(kThreeSteps[0], at_step(1));
  EXPECT_EQ(source.time_after(at_step(1))->seconds, 16);
  source.taken(kThreeSteps[1], at_step(2));
  EXPECT_EQ(source.time_after(at_step(2))->seconds, 19.5);
}

TEST(TimedSource, GoesOnFromAState) {
  TimedSource::Options options = with_checkpoints(2);
  TimedSource whole = timed(kThreeSteps, options);
  whole.taken(kThreeSteps[0], at_step(1));
  const State state = state_of(whole, 1);
  TimedSource again = timed(kThreeSteps, options);
  load_state(again, state, 1);
  EXPECT_EQ(again.time_after(at_step(1)), whole.time_after(at_step(1)));

  options.cluster.restart_seconds = 1;
  TimedSource other = timed(kThreeSteps, options);
  EXPECT_THAT(error_of([&] { load_state(other, state, 1); }),
              HasSubstr("another cluster or policy"));
  options = with_checkpoints(2);
  options.cores = 3;
  TimedSource wider = timed(kThreeSteps, options);
  EXPECT_THAT(error_of([&] { load_state(wider, state, 1); }),
              HasSubstr("another cluster or policy"));
  TimedSource others = timed({{8, 1}}, timed_options());
  EXPECT_THAT(error_of([&] { load_state(others, state, 1); }), HasSubstr("three.csv"))
      << "what its own source refuses";
}

TEST(TimedSource, PriceIsNoPartOfTheState) {
  TimedSource whole = timed(kThreeSteps, timed_options());
  whole.taken(kThreeSteps[0], at_step(1));
  const State state = state_of(whole, 1);
  TimedSource::Options dear = timed_options();
  dear.cluster.price.constant *= 2;
  TimedSource again = timed(kThreeSteps, dear);
  load_state(again, state, 1);
  EXPECT_EQ(again.time_after(at_step(1))->money, 22) << "of all the time";
}

TEST(TimedSource, KnowsTheCoresOfHosts) {
  const auto seconds = [](std::vector<std::int64_t> host_cores) {
    TimedSource::Options options = timed_options();
    options.cluster.hosts = 2;
    const std::vector<TraceStep> steps{
        {.batch_size = 32, .cores = 4, .host_cores = std::move(host_cores)}};
    return timed(steps, options).time_after(at_step(0))->seconds;
  };
  // Besides the few bytes that they exchange.
  constexpr double kExchange = 1e-6;
  EXPECT_NEAR(seconds({}), 2.5, kExchange) << "four minibatches on two cores each";
  EXPECT_NEAR(seconds({2, 2}), 2.5, kExchange);
  EXPECT_NEAR(seconds({3, 1}), 2 + 1 + 0.5, kExchange) << "four on three cores, then two";
  EXPECT_NEAR(seconds({4}), 2.5, kExchange) << "eight on four";
}

// One core less than there are, and two minibatches for each.
class OneLess final : public BatchPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "one less"; }
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& /*progress*/) const override {
    const std::int64_t cores = std::max<std::int64_t>(1, *offered.cores - 1);
    return {.step = {.batch_size = 8 * cores, .cores = cores}, .inputs = {{"heard", heard}}};
  }
  void observe(const ObservedStep& step) override { heard += step.seconds.value(); }
  [[nodiscard]] std::int64_t max_batch(std::int64_t offered) const override { return offered + 4; }
  [[nodiscard]] bool needs_noise_scale() const override { return true; }
  [[nodiscard]] bool needs_seconds() const override { return true; }
  void visit_state(StateVisitor& state) override { state.value("heard", heard); }

  double heard = 0;
};

TEST(TimedSource, TakesWhatItsPolicyDecides) {
  TimedSource::Options options = with_checkpoints(1);
  const auto make = [&](std::unique_ptr<BatchPolicy> policy) {
    return TimedSource(std::make_unique<TraceSource>(Trace(kThreeSteps, TraceEnd::stop, "three")),
                       options, std::move(policy));
  };
  TimedSource source = make(std::make_unique<OneLess>());
  EXPECT_EQ(source.max_batch(), 28);
  EXPECT_TRUE(source.needs_noise_scale());
  EXPECT_EQ(source.trace(), nullptr) << "nobody knows the steps";
  const std::int64_t cores[] = {1, 2, 1};
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto step = source.next(at_step(i));
    EXPECT_EQ(step, (TraceStep{.batch_size = 8 * cores[i], .cores = cores[i]}));
    EXPECT_EQ(source.time_after(at_step(i))->seconds, 12.5 * static_cast<double>(i + 1));
    EXPECT_EQ(source.decision_inputs(at_step(i)),
              (std::vector<NamedNumber>{{"heard", 2.5 * static_cast<double>(i)}}))
        << "without checkpoints";
    source.taken(*step, at_step(i + 1));
  }
  EXPECT_EQ(source.next(at_step(3)), std::nullopt);
  EXPECT_TRUE(source.decision_inputs(at_step(3)).empty());
  const State state = state_of(source, 3);
  TimedSource again = make(std::make_unique<OneLess>());
  load_state(again, state, 3);
  const State same = state_of(again, 3);
  EXPECT_EQ(same, state);
  TimedSource without = make(nullptr);
  EXPECT_THAT(error_of([&] { load_state(without, state, 3); }),
              HasSubstr("another cluster or policy"));
}

TEST(TimedSource, RefusesWhatIsNoClock) {
  const auto error = [](std::unique_ptr<StepSource> source, const TimedSource::Options& options) {
    return error_of([&] { TimedSource{std::move(source), options}; });
  };
  const auto trace = [] { return std::make_unique<TraceSource>(Trace::constant(8)); };
  EXPECT_THAT(error(nullptr, {}), HasSubstr("the clock has no steps"));
  EXPECT_THAT(error(std::make_unique<TimedSource>(trace(), TimedSource::Options{}), {}),
              HasSubstr("has a clock already"));
  EXPECT_THAT(error(trace(), {.minibatch_size = 0}), HasSubstr("at least 1 of each"));
  EXPECT_THAT(error(trace(), {.cores = 0}), HasSubstr("at least 1 of each"));
  EXPECT_THAT(error(trace(), {.cluster = {.substep_seconds = 0}}), HasSubstr("substep is 0"));
}

}  // namespace
}  // namespace rubato
