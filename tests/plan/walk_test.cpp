// The walk through the epochs of a training.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/walk.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

TraceSource rows(std::vector<TraceStep> steps, TraceEnd end) {
  return TraceSource(Trace(std::move(steps), end, "made"));
}

PlanOptions options_of(Remainder remainder) {
  return {.dataset_size = 10, .minibatch_size = 2, .remainder = remainder};
}

// "0:4 6 | 1:8+ ": of each epoch its steps' samples, and whether it is whole.
std::string walked(Walk walk, std::int64_t epochs) {
  std::string text;
  while (walk.epoch().value() < epochs && !walk.has_ended()) {
    text += std::to_string(walk.epoch().value()) + ":";
    while (const NextStep* const step = walk.next()) {
      text += std::to_string(step->plan.batch_size) + " ";
      walk.take();
    }
    text += std::to_string(walk.epoch_samples()) + (walk.has_ended() ? "+ " : "| ");
    if (walk.epoch_is_full()) walk.end_epoch();
  }
  return text;
}

TEST(Walk, CutsEpochs) {
  TraceSource source = rows({{4, {}}, {8, {}}, {2, {}}}, TraceEnd::stop);
  EXPECT_EQ(walked(Walk(source, options_of(Remainder::drop)), 9), "0:4 4| 1:8 2 10| ");
  EXPECT_EQ(walked(Walk(source, options_of(Remainder::carry)), 9), "0:4 8 10| 1:2 4+ ");
  TraceSource large = rows({{24, {}}, {4, {}}}, TraceEnd::stop);
  EXPECT_EQ(walked(Walk(large, options_of(Remainder::carry)), 9), "0:24 10| 1:10| 2:4 8+ ");
}

// What a walk says of where it is.
std::string standing(Walk& walk) {
  const SourceProgress progress = walk.progress();
  const NextStep* const next = walk.next();
  std::string text;
  for (const std::int64_t number :
       {walk.epoch().value(), walk.step().value(), walk.first_step().value(), walk.epoch_steps(),
        walk.epoch_samples(), walk.samples_before(), walk.samples(), progress.epoch.value(),
        progress.samples_left.value_or(-1), next != nullptr ? next->plan.batch_size : -1}) {
    text += std::to_string(number) + " ";
  }
  return text + std::to_string(walk.iterations()) + " " +
         std::to_string(progress.gain.value_or(-1));
}

// Steps of 24 and 4 samples without a trace, so that the gain is part of the state.
FunctionSource alternating() {
  return FunctionSource(
      [](const SourceProgress& progress) {
        return TraceStep{.batch_size = progress.step.value() % 2 == 0 ? 24 : 4};
      },
      {.max_batch = 24});
}

TEST(Walk, GoesOnFromAStateWhereverItWas) {
  PlanOptions options = options_of(Remainder::carry);
  options.epochs = 7;
  FunctionSource source = alternating();
  Walk walk(source, options);
  std::int64_t states = 0;
  while (walk.epoch().value() < options.epochs) {
    for (bool in_epoch : {false, true}) {
      // Only behind all steps of an epoch is a walk not in it.
      if (!in_epoch && walk.epoch_steps() > 0) continue;
      const State state = state_of(walk, in_epoch, std::nullopt);
      FunctionSource other = alternating();
      Walk loaded(other, options);
      bool was_in_epoch = !in_epoch;
      load_state(loaded, state, was_in_epoch, std::nullopt);
      EXPECT_EQ(was_in_epoch, in_epoch);
      EXPECT_EQ(standing(loaded), standing(walk));
      ++states;
    }
    if (walk.next() != nullptr) {
      walk.take(0.5);
    } else {
      walk.end_epoch();
    }
  }
  EXPECT_EQ(walk.samples(), 70);
  EXPECT_GE(states, 2 * options.epochs);
}

TEST(Walk, IsAtTheBeginningOfTheNextEpochBehindTheLastStepOfOne) {
  TraceSource source = rows({{4, {}}, {6, {}}}, TraceEnd::cycle);
  PlanOptions options = options_of(Remainder::carry);
  options.epochs = 3;
  Walk walk(source, options);
  for (const auto& [epoch, left] : {std::pair{0, 26}, {1, 20}, {1, 16}, {2, 10}}) {
    ASSERT_NE(walk.next(), nullptr);
    walk.take();
    EXPECT_EQ(walk.progress().epoch, EpochIndex{epoch});
    EXPECT_EQ(walk.progress().samples_left, left);
    if (walk.epoch_is_full()) walk.end_epoch();
  }
}

TEST(Walk, ForgetsANoiseScaleThatTheNextStepHasNot) {
  TraceSource source = rows({{2, {}}}, TraceEnd::hold);
  Walk walk(source, options_of(Remainder::drop));
  walk.take(1, 3.0);
  EXPECT_EQ(walk.progress().noise_scale, 3.0);
  walk.take(1);
  EXPECT_EQ(walk.progress().noise_scale, std::nullopt);
}

TEST(Walk, RefusesAStepAboveWhatItsSourceHasAnnounced) {
  FunctionSource source([](const SourceProgress&) { return TraceStep{.batch_size = 6}; },
                        {.max_batch = 4});
  Walk walk(source, options_of(Remainder::drop));
  const std::string error = error_of([&] { return walk.next(); });
  EXPECT_THAT(error, testing::HasSubstr("batch size 6 is above the largest"));
  EXPECT_EQ(error_of([&] { return walk.has_ended(); }), error);
}

TEST(Walk, AnEpochThatIsNotWholeDoesNotCount) {
  TraceSource source = rows({{4, {}}}, TraceEnd::hold);
  Walk walk(source, options_of(Remainder::drop));
  walk.take();
  const EpochPart part = walk.part(std::nullopt).value();
  EXPECT_EQ(part.steps, 1);
  EXPECT_EQ(part.samples, 4);
  EXPECT_EQ(part.of_steps, 2);
  walk.end_epoch(false);
  EXPECT_EQ(walk.epoch(), EpochIndex{0});
  EXPECT_EQ(walk.first_step(), StepIndex{1});
  EXPECT_EQ(walk.epoch_samples(), 0);
}

TEST(Walk, SaysWhatItsNextStepReachesOfTheBudget) {
  TraceSource source = rows({{4, {}}}, TraceEnd::hold);
  Walk walk(source, options_of(Remainder::drop), {.iterations = 3.0, .samples = 8});
  EXPECT_EQ(walk.reached_with(2), "");
  EXPECT_EQ(walk.reached_with(3), "3 iterations reached");
  walk.take(2);
  EXPECT_EQ(walk.reached_with(0.5), "8 samples reached");
  EXPECT_EQ(walk.reached_with(1), "3 iterations reached");
}

}  // namespace
}  // namespace rubato
