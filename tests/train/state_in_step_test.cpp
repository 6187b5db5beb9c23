// The state before a step, taken by another thread while the step is computed.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gmock/gmock.h>

#include <rubato/testing.hpp>

#include "train/around.hpp"

namespace rubato {
namespace {

using std::chrono::seconds;

// Two epochs; without oneTBB's threads, which ThreadSanitizer does not understand.
TrainOptions watched_options() {
  TrainOptions options{.epochs = 2,
                       .minibatch_size = 2,
                       .learning_rate = 0.02,
                       .rule = "adascale",
                       .optimizer = {.momentum = 0.9},
                       .cores = 4,
                       .threads = 1};
  options.lookahead.emplace().k = 3;
  return options;
}
Trace watched_trace() {
  return test::trace_of({2, 12, 8, 4, 22, 6, 2, 4, 10, 12, 14});
}
Trainer watched_trainer(std::unique_ptr<ObjectiveOf<double>> objective = test::tiny_objective()) {
  return Trainer(std::move(objective), watched_trace(), watched_options());
}

// That a trainer goes on from the state to the bits of one that nobody has watched.
void expect_goes_on(const State& state, std::int64_t steps) {
  SCOPED_TRACE(steps);
  Trainer whole = watched_trainer();
  whole.fit();
  Trainer second = watched_trainer();
  second.load_state(parse_state(state_bytes(state), "the state"));
  EXPECT_EQ(second.result().steps, steps);
  second.fit();
  EXPECT_EQ(test::difference_of(whole, second), std::nullopt);
  EXPECT_EQ(second.result().iterations, whole.result().iterations);
}

// In each minibatch and in the test it waits until somebody has taken the state, or for so long
// that the test fails.
class Slow final : public test::Around {
 public:
  Slow()
      : Around([this](auto& inner, const auto& minibatch, const auto& leaf, auto& progress) {
          wait();
          return inner.evaluate(minibatch, leaf, progress);
        }) {}

  std::atomic<int> taken = 0;
  std::atomic<int> missed = 0;

  void wait() {
    const int before = taken.load();
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    while (taken.load() == before && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    if (taken.load() == before) ++missed;
  }
  bool has_test() const override { return true; }
  std::string test_fingerprint() const override { return "a test"; }
  Evaluation test(Workers&, const EvaluationOptions&, std::string_view) override {
    wait();
    Evaluation evaluation;
    evaluation.samples = 1;
    return evaluation;
  }
};

TEST(StateInStep, IsThatBeforeTheStepAndGoesOnToTheSameBits) {
  class Pause final : public Observer {
   public:
    void between_steps(Training&) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  };
  Trainer trainer = watched_trainer();
  trainer.add_observer<Pause>();
  std::map<std::int64_t, State> states;
  std::atomic<bool> ended = false;
  std::thread reader([&] {
    while (!ended) {
      trainer.state_in_step(
          [&](const State& state, std::int64_t steps) { states.try_emplace(steps, state); });
    }
  });
  trainer.fit();
  ended = true;
  reader.join();
  Trainer whole = watched_trainer();
  whole.fit();
  EXPECT_EQ(test::difference_of(whole, trainer), std::nullopt);
  // No stretch is too short for who has waited for it.
  EXPECT_GE(states.size(), 3U);
  for (const auto& [steps, state] : states) expect_goes_on(state, steps);
}

TEST(StateInStep, IsThereHoweverLongTheStepAndTheTestTake) {
  auto slow = std::make_unique<Slow>();
  Slow& of = *slow;
  Trainer trainer = watched_trainer(std::move(slow));
  std::atomic<bool> ended = false;
  std::map<std::int64_t, int> times;
  std::thread reader([&] {
    while (!ended) {
      if (trainer.state_in_step([&](const State&, std::int64_t steps) { ++times[steps]; })) {
        ++of.taken;
      }
    }
  });
  const TrainResult result = trainer.fit();
  ended = true;
  reader.join();
  EXPECT_EQ(of.missed, 0);
  // Before each step, and in the test behind the last one.
  for (std::int64_t steps = 0; steps <= result.steps; ++steps) EXPECT_GE(times[steps], 1) << steps;
}

// What observers remember of a core that dies changes in the middle of a step.
TEST(StateInStep, WaitsForObservers) {
  class Counter final : public Observer {
   public:
    std::string_view name() const override { return "counter"; }
    void on_fault(Training&, const StepPlan&, std::span<const FaultRecord>, std::int64_t) override {
      ++faults;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++faults;
    }
    void visit_state(StateVisitor& state, const Training&) override {
      state.count("faults", faults);
    }
    std::int64_t faults = 0;
  };
  TrainOptions options = watched_options();
  options.faults.planned = {{.core = CoreRank{0}, .step = StepIndex{1}},
                            {.core = CoreRank{1}, .step = StepIndex{1}}};
  Trainer trainer(test::tiny_objective(), watched_trace(), options);
  const auto counter = trainer.add_observer<Counter>();
  std::atomic<bool> ended = false;
  std::atomic<int> odd = 0;
  std::thread reader([&] {
    while (!ended) {
      trainer.state_in_step([&](const State&, std::int64_t) { odd += counter->faults % 2 == 1; });
    }
  });
  trainer.fit();
  ended = true;
  reader.join();
  EXPECT_GE(counter->faults, 2);
  EXPECT_EQ(odd, 0);
}

TEST(StateInStep, IsNoneWhereNothingIsTrained) {
  const auto nothing = [](const State&, std::int64_t) { ADD_FAILURE(); };
  Trainer trainer = watched_trainer();
  EXPECT_FALSE(trainer.state_in_step(nothing));
  trainer.fit();
  EXPECT_FALSE(trainer.state_in_step(nothing));
}

// Who waits when training ends, or throws, is not left waiting.
TEST(StateInStep, EndsWithTraining) {
  class Ends final : public Observer {
   public:
    explicit Ends(bool throws) : throws_(throws) {}
    void on_step(Training& training, const StepRecord&) override {
      if (!waits) return;
      // For the other thread to begin to wait; where it has not, the test sees less.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (throws_) throw Error("enough");
      training.stop("enough");
    }
    std::atomic<bool> waits = false;

   private:
    bool throws_;
  };
  for (const bool throws : {false, true}) {
    TrainOptions options = watched_options();
    options.epochs = 1'000'000;
    Trainer trainer(std::make_unique<test::Around>(), test::trace_of({2}), options);
    const auto ends = trainer.add_observer<Ends>(throws);
    std::thread reader([&] {
      const auto nothing = [](const State&, std::int64_t) {};
      while (!trainer.state_in_step(nothing)) std::this_thread::yield();
      ends->waits = true;
      while (trainer.state_in_step(nothing)) std::this_thread::yield();
    });
    if (throws) {
      EXPECT_THROW(trainer.fit(), Error);
    } else {
      trainer.fit();
    }
    reader.join();
  }
}

}  // namespace
}  // namespace rubato
