// Steps that are asked for when they are needed: a trace's, a policy's, a source's with a memory.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;

TrainOptions source_options() {
  return {.epochs = 3,
          .minibatch_size = 4,
          .learning_rate = 0.05,
          .reference_batch_size = 8,
          .rule = "adascale",
          .cores = 3,
          .threads = 2};
}

using Policy = FunctionSource::Function;

Trainer trainer_of(const Policy& policy, FunctionSourceOptions of_source = {.max_batch = 48},
                   const TrainOptions& options = source_options()) {
  return Trainer(tiny_objective(), std::make_unique<FunctionSource>(policy, of_source), options);
}

// As large as the noise allows, on a core for each minibatch.
std::optional<TraceStep> by_noise(const SourceProgress& so_far) {
  const double noise = so_far.noise_scale.value_or(4);
  const std::int64_t minibatches = std::clamp<std::int64_t>(std::llround(noise / 4), 1, 4);
  return TraceStep{.batch_size = 4 * minibatches, .cores = minibatches};
}

std::vector<std::int64_t> batches_of(const test::Recorder& recorder) {
  std::vector<std::int64_t> batches;
  for (const StepRecord& step : recorder.steps) batches.push_back(step.plan.batch_size);
  return batches;
}

TEST(Source, OfTheRowsOfATraceIsTheTrace) {
  for (const TraceEnd end : {TraceEnd::cycle, TraceEnd::stop}) {
    const Trace trace = trace_of({8, 16, 4, 20, 12, 8, 8}, end);
    Trainer by_trace(tiny_objective(), trace, source_options());
    const auto expected = test::recorded(by_trace);
    Trainer by_function =
        trainer_of([&](const SourceProgress& so_far) { return trace.at(so_far.step); });
    const auto recorder = test::recorded(by_function);
    EXPECT_EQ(test::difference_of(by_trace, by_function), std::nullopt);
    EXPECT_EQ(batches_of(*recorder), batches_of(*expected));
    EXPECT_EQ(by_function.result().epochs, by_trace.result().epochs);
    EXPECT_EQ(by_function.result().part.has_value(), by_trace.result().part.has_value());
    EXPECT_EQ(recorder->epochs.back().train_loss, expected->epochs.back().train_loss);
    EXPECT_EQ(recorder->epochs.back().whole, expected->epochs.back().whole);
    if (end == TraceEnd::stop) {
      EXPECT_EQ(by_trace.result().stopped, "the trace ended after 7 steps");
      EXPECT_EQ(by_function.result().stopped, "the source of the steps ended after 7 steps");
    }
  }
}

TEST(Source, SaysWhatIsKnownOfAnEpoch) {
  const Trace trace = trace_of({20, 20, 16});
  Trainer by_trace(tiny_objective(), trace, source_options());
  const auto known = test::recorded(by_trace);
  ASSERT_EQ(known->begun.size(), 3U);
  EXPECT_EQ(known->begun[1].index, EpochIndex{1});
  EXPECT_EQ(known->begun[1].first_step, StepIndex{2});
  EXPECT_EQ(known->begun[1].samples, 36);
  EXPECT_EQ(known->begun[1].steps, 2);
  Trainer by_function =
      trainer_of([&](const SourceProgress& so_far) { return trace.at(so_far.step); });
  const auto unknown = test::recorded(by_function);
  ASSERT_EQ(unknown->begun.size(), 3U);
  EXPECT_EQ(unknown->begun[1].first_step, StepIndex{2});
  EXPECT_EQ(unknown->begun[1].samples, 48) << "as many as there can be";
  EXPECT_EQ(unknown->begun[1].steps, std::nullopt);
}

TEST(Source, HearsWhatTrainingHasComeTo) {
  std::vector<SourceProgress> heard;
  Trainer trainer = trainer_of(
      [&](const SourceProgress& so_far) -> std::optional<TraceStep> {
        if (heard.empty() || heard.back().step != so_far.step) heard.push_back(so_far);
        return TraceStep{.batch_size = 20, .cores = std::nullopt};
      },
      {.max_batch = 20, .needs_noise_scale = true});
  const auto recorder = test::recorded(trainer);
  ASSERT_EQ(recorder->steps.size(), 6U);
  ASSERT_EQ(heard.size(), 7U) << "a step that fits into no epoch any more";
  EXPECT_EQ(heard[0].gain, std::nullopt);
  EXPECT_EQ(heard[0].noise_scale, std::nullopt);
  for (std::size_t i = 1; i < heard.size(); ++i) {
    EXPECT_EQ(heard[i].step.offset(), i);
    EXPECT_EQ(heard[i].samples, static_cast<std::int64_t>(20 * i));
    EXPECT_EQ(heard[i].gain, recorder->steps[i - 1].gain);
    EXPECT_EQ(heard[i].iterations, recorder->steps[i - 1].iterations);
    EXPECT_EQ(heard[i].noise_scale, recorder->steps[i - 1].noise_scale);
  }
  EXPECT_TRUE(heard.back().noise_scale.has_value());
}

TEST(Source, HasTheSameBitsWhoeverComputesAndThroughResumes) {
  const auto make = [](const auto& change) {
    TrainOptions options = source_options();
    change(options);
    return trainer_of(by_noise, {.max_batch = 16, .needs_noise_scale = true}, options);
  };
  Trainer trainer = make([](TrainOptions&) {});
  const auto recorder = test::recorded(trainer);
  std::vector<std::int64_t> batches = batches_of(*recorder);
  std::sort(batches.begin(), batches.end());
  EXPECT_NE(batches.front(), batches.back()) << "the policy follows something";
  EXPECT_EQ(test::difference_in_bits(make, 8), std::nullopt);
}

// Goes up by a minibatch with each step taken, and begins again behind the fourth: not a function
// of the progress alone.
class Stairs final : public StepSource {
 public:
  std::optional<TraceStep> next(const SourceProgress&) const override {
    return TraceStep{.batch_size = 4 * (stair_ + 1), .cores = std::nullopt};
  }
  void taken(const TraceStep& step, const SourceProgress& after) override {
    EXPECT_EQ(step.batch_size, 4 * (stair_ + 1));
    EXPECT_GT(after.step.value(), 0);
    stair_ = (stair_ + 1) % 4;
  }
  std::int64_t max_batch() const override { return 16; }
  void visit_state(StateVisitor& state, std::int64_t steps) override {
    state.count("stair", stair_);
    std::int64_t taken = steps;
    state.count("steps", taken);
    EXPECT_EQ(taken, steps);
  }

 private:
  std::int64_t stair_ = 0;
};

TEST(Source, GoesOnFromWhatItHasSaved) {
  const auto make = [](const auto& change) {
    TrainOptions options = source_options();
    change(options);
    return Trainer(tiny_objective(), std::make_unique<Stairs>(), options);
  };
  Trainer trainer = make([](TrainOptions&) {});
  const auto recorder = test::recorded(trainer);
  const std::vector<std::int64_t> batches = batches_of(*recorder);
  ASSERT_GE(batches.size(), 9U);
  EXPECT_THAT(std::vector(batches.begin(), batches.begin() + 5), ElementsAre(4, 8, 12, 16, 4));
  EXPECT_EQ(test::difference_in_bits(make, 9), std::nullopt);
}

TEST(Source, IsAskedForWhatCanBeTrained) {
  const auto error = [](std::int64_t batch_size, std::optional<std::int64_t> cores = {}) {
    Trainer trainer = trainer_of(
        [=](const SourceProgress& so_far) -> std::optional<TraceStep> {
          if (so_far.step.value() < 2) return TraceStep{.batch_size = 8, .cores = std::nullopt};
          return TraceStep{.batch_size = batch_size, .cores = cores};
        },
        {.max_batch = 64});
    std::string what = error_of([&] { trainer.fit(); });
    EXPECT_EQ(trainer.result().steps, 2);
    EXPECT_TRUE(trainer.has_state());
    EXPECT_EQ(trainer.state().count("steps"), 2);
    return what;
  };
  EXPECT_EQ(
      error(10),
      "step 3 of its source: batch size 10 is not a multiple of the minibatch size 4; accepted: "
      "a multiple, such as 8 or 12");
  EXPECT_THAT(error(0), HasSubstr("step 3 of its source: batch size 0; accepted"));
  EXPECT_THAT(error(-4), HasSubstr("batch size -4; accepted"));
  EXPECT_THAT(error(8, 0), HasSubstr("cores 0; accepted"));
  EXPECT_THAT(error(52), HasSubstr("batch size 52 is larger than an epoch"));
  Trainer small = trainer_of(
      [](const SourceProgress&) { return TraceStep{.batch_size = 20, .cores = std::nullopt}; },
      {.max_batch = 16});
  EXPECT_EQ(error_of([&] { small.fit(); }),
            "step 1 of its source: batch size 20 is above the largest that the source has "
            "announced; accepted: at most 16");
}

TEST(Source, ThatThrowsLeavesTheStepsTaken) {
  const auto policy = [](std::int64_t failing) -> Policy {
    return [=](const SourceProgress& so_far) -> std::optional<TraceStep> {
      if (so_far.step.value() == failing) throw std::runtime_error("no capacity");
      return TraceStep{.batch_size = 4 + 4 * (so_far.step.value() % 3), .cores = std::nullopt};
    };
  };
  Trainer whole = trainer_of(policy(-1));
  whole.fit();
  for (std::int64_t step = 0; step < 9; ++step) {
    Trainer first = trainer_of(policy(step));
    EXPECT_THROW(first.fit(), std::runtime_error);
    Trainer second = trainer_of(policy(-1));
    second.load_state(parse_state(state_bytes(first.state()), "the state"));
    EXPECT_EQ(second.result().steps, step);
    second.fit();
    EXPECT_EQ(test::difference_of(whole, second), std::nullopt) << step;
    EXPECT_EQ(second.result().steps, whole.result().steps);
  }
}

// A part of an epoch that was evaluated is not gone on in, wherever its steps came from.
TEST(Source, ThatHasEndedGoesOnWithTheNextEpochOnly) {
  const auto of_steps = [](std::int64_t steps) -> Policy {
    return [=](const SourceProgress& so_far) -> std::optional<TraceStep> {
      if (so_far.step.value() >= steps) return std::nullopt;
      return TraceStep{.batch_size = 16, .cores = std::nullopt};
    };
  };
  for (const std::int64_t steps : {3, 4}) {
    Trainer first = trainer_of(of_steps(steps));
    EXPECT_THAT(first.fit().stopped, HasSubstr("ended after"));
    EXPECT_EQ(first.result().epochs, 1);
    Trainer same = trainer_of(of_steps(steps));
    same.load_state(first.state());
    EXPECT_EQ(same.fit().steps, steps);
    Trainer longer = trainer_of(of_steps(9));
    const std::string error = error_of([&] { longer.load_state(first.state()); });
    if (steps == 3) {
      EXPECT_EQ(error, "no error");
      EXPECT_EQ(longer.fit().steps, 9);
    } else {
      EXPECT_EQ(error,
                "step 5 of its source: epoch 2 of the run ended before this step, and now it "
                "continues; accepted: a source that ends there, too");
    }
  }
}

// Keeps the state of where its source ends inside an epoch.
struct CutShort final : public Observer {
  void on_cut_short(Training& training) override { state = training.state(); }
  void on_epoch(Training& /*training*/, const EpochRecord& epoch) override {
    EXPECT_TRUE(epoch.whole || state.has_value()) << "told before";
  }
  std::optional<State> state;
};

TEST(Source, ThatEndsInAnEpochLeavesAStateToGoOnFromInIt) {
  const auto of_steps = [](std::int64_t steps) -> Policy {
    return [=](const SourceProgress& so_far) -> std::optional<TraceStep> {
      if (so_far.step.value() >= steps) return std::nullopt;
      return TraceStep{.batch_size = 16, .cores = std::nullopt};
    };
  };
  Trainer whole = trainer_of(of_steps(9));
  whole.fit();
  for (const std::int64_t steps : {3, 4, 5}) {
    Trainer first = trainer_of(of_steps(steps));
    const auto cut = first.add_observer<CutShort>();
    first.fit();
    ASSERT_EQ(cut->state.has_value(), steps != 3) << "an epoch has three steps";
    Trainer longer = trainer_of(of_steps(9));
    longer.load_state(cut->state ? *cut->state : first.state());
    longer.fit();
    EXPECT_EQ(test::difference_of(whole, longer), std::nullopt) << steps;
    EXPECT_EQ(longer.result().epochs, whole.result().epochs);
  }
}

// What is left of an epoch is reckoned by the last step, in a state that is loaded, too.
TEST(Source, KnowsAfterALoadHowMuchOfItsEpochIsLeft) {
  const Policy policy = [](const SourceProgress&) { return TraceStep{.batch_size = 8}; };
  Trainer first = trainer_of(policy);
  test::train_until(first, 2);
  ASSERT_TRUE(first.result().part);
  EXPECT_EQ(first.result().part->of_steps, 6);
  Trainer second = trainer_of(policy);
  second.load_state(first.state());
  ASSERT_TRUE(second.result().part);
  EXPECT_EQ(second.result().part->of_steps, 6);
}

// A step a second, so many of them; and then it waits for another nine.
class Ending final : public StepSource {
 public:
  Ending(std::int64_t steps, SourceEnd::Cause cause) : left_(steps), cause_(cause) {}

  std::optional<TraceStep> next(const SourceProgress& progress) const override {
    budgets_.push_back(progress.budget);
    if (left_ == 0) return std::nullopt;
    return TraceStep{.batch_size = 16};
  }
  void taken(const TraceStep&, const SourceProgress&) override { --left_, ++time_.seconds; }
  bool has_clock() const override { return true; }
  std::optional<ClockTime> time_after(const SourceProgress&) const override {
    return ClockTime{.seconds = time_.seconds + 1};
  }
  SourceEnd end(const SourceProgress&) const override {
    for (const Budget& budget : budgets_) EXPECT_EQ(budget, kTenSeconds);
    return {.cause = cause_, .time = ClockTime{.seconds = time_.seconds + 9, .idle_seconds = 9}};
  }
  std::int64_t max_batch() const override { return 16; }
  void visit_state(StateVisitor& state, std::int64_t steps) override {
    state.value("seconds", time_.seconds);
    if (state.loading()) left_ -= steps;
  }

  static constexpr Budget kTenSeconds{.hours = 10.0 / 3600};

 private:
  std::int64_t left_;
  SourceEnd::Cause cause_;
  ClockTime time_;
  mutable std::vector<Budget> budgets_;
};

// With the whole epoch that three steps are, and in the middle of the next one.
TEST(Source, SaysWhyItHasNoFurtherStep) {
  const auto trainer_of_ending = [](std::int64_t steps, SourceEnd::Cause cause) {
    TrainOptions options = source_options();
    options.budget = Ending::kTenSeconds;
    return Trainer(tiny_objective(), std::make_unique<Ending>(steps, cause), options);
  };
  for (const std::int64_t steps : {3, 4}) {
    SCOPED_TRACE(steps);
    const auto ended = [&](SourceEnd::Cause cause) {
      Trainer trainer = trainer_of_ending(steps, cause);
      const auto recorder = trainer.add_observer<test::Recorder>();
      const TrainResult result = trainer.fit();
      EXPECT_EQ(result.out_of_devices, cause == SourceEnd::Cause::out_of_devices);
      EXPECT_EQ(result.time->seconds, steps + 9);
      // The end of a whole epoch is its last step.
      EXPECT_EQ(recorder->epochs.back().time->seconds, steps == 3 ? 3 : 13);
      return result.stopped;
    };
    EXPECT_EQ(ended(SourceEnd::Cause::exhausted),
              "the source of the steps ended after " + std::to_string(steps) + " steps");
    EXPECT_EQ(ended(SourceEnd::Cause::out_of_devices), "out of devices");
    EXPECT_EQ(ended(SourceEnd::Cause::budget), "0.00277778 hours of the clock reached");
  }
  // What it has waited for is not part of the state: there may be steps the next time.
  Trainer first = trainer_of_ending(3, SourceEnd::Cause::out_of_devices);
  first.fit();
  Trainer second = trainer_of_ending(4, SourceEnd::Cause::out_of_devices);
  second.load_state(first.state());
  EXPECT_EQ(second.result().stopped, "");
  EXPECT_FALSE(second.result().out_of_devices);
  EXPECT_EQ(second.result().time->seconds, 3);
}

TEST(Source, IsOneThatThereIs) {
  EXPECT_EQ(
      error_of([] { Trainer(tiny_objective(), std::unique_ptr<StepSource>(), source_options()); }),
      "a trainer needs a source of its steps; accepted: any but null");
  EXPECT_EQ(error_of([] { trainer_of(by_noise, {.max_batch = 0}); }),
            "the source of the steps has a largest batch size of 0; accepted: at least 1");
  EXPECT_EQ(error_of([] { trainer_of({}); }),
            "a source of steps without a function; accepted: one that is not empty");
}

}  // namespace
}  // namespace rubato
