// Observers and their names: what each saves is its own, and nothing of it is lost.

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/no_training.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;

Trainer observed_trainer(std::int64_t epochs = 4) {
  return Trainer(tiny_objective(), trace_of({8, 16, 4}),
                 {.epochs = epochs,
                  .minibatch_size = 4,
                  .learning_rate = 0.1,
                  .reference_batch_size = 8,
                  .cores = 3,
                  .threads = 2});
}

// Counts the steps, across resumes.
class Counter final : public Observer {
 public:
  explicit Counter(std::string name = "counter", std::int64_t by = 1)
      : name_(std::move(name)), by_(by) {}
  std::string_view name() const override { return name_; }
  void on_step(Training&, const StepRecord&) override { count += by_; }
  void visit_state(StateVisitor& state, const Training&) override {
    if (silent && count == 0) return;
    state.count("count", count);
    const std::string by = std::to_string(by_);
    EXPECT_EQ(state.bound("by", by), by);
  }

  std::int64_t count = 0;
  bool silent = false;

 private:
  std::string name_;
  std::int64_t by_;
};

TEST(ObserverNames, GiveTwoOfAKindTwoStates) {
  Trainer first = observed_trainer();
  const auto ones = first.add_observer<Counter>();
  const auto tens = first.add_named_observer<Counter>("tens", "counter", 10);
  const auto best = first.add_observer<BestWeights>(Metric::test_loss);
  const auto worst = first.add_named_observer<BestWeights>("of-training", Metric::train_loss);
  first.fit();
  const State state = parse_state(state_bytes(first.state()), "the state");
  EXPECT_EQ(observer_state(state, "counter").count("count"), ones->count);
  EXPECT_EQ(observer_state(state, "tens").count("count"), tens->count);
  EXPECT_TRUE(observer_state(state, "of-training").has("parameter.weight"));

  Trainer second = observed_trainer();
  // In another order.
  const auto more_of_training =
      second.add_named_observer<BestWeights>("of-training", Metric::train_loss);
  const auto more_tens = second.add_named_observer<Counter>("tens", "counter", 10);
  const auto more_ones = second.add_observer<Counter>();
  const auto more_best = second.add_observer<BestWeights>(Metric::test_loss);
  second.load_state(state);
  EXPECT_EQ(more_ones->count, ones->count);
  EXPECT_EQ(more_tens->count, 10 * ones->count);
  EXPECT_EQ(more_best->value(), best->value());
  EXPECT_EQ(more_of_training->value(), worst->value());
  EXPECT_NE(more_best->value(), more_of_training->value());
}

// A parameter, as observers see it.
class OneParameter final : public test::NoTraining {
 public:
  [[nodiscard]] const std::vector<NamedArray>& parameters() const override { return arrays_; }
  [[nodiscard]] const std::vector<NamedArray>& buffers() const override { return none_; }

  std::vector<double> values{0.0};

 private:
  std::vector<NamedArray> arrays_{
      {.name = "weight", .type = ElementType::f64, .shape = {1}, .data = values.data()}};
  std::vector<NamedArray> none_;
};

// The best is neither the first nor the last.
TEST(BestWeights, SayOfWhichEpochTheyAre) {
  OneParameter training;
  BestWeights best(Metric::test_loss);
  for (const auto& [epoch, loss] : {std::pair(0, 3.0), {1, 2.0}, {2, 1.0}, {3, 1.5}, {4, 2.5}}) {
    training.values[0] = 10 * loss;
    best.on_epoch(training,
                  {.epoch = EpochIndex{epoch}, .test = Evaluation{.samples = 1, .loss = loss}});
  }
  EXPECT_EQ(best.epoch(), EpochIndex{2});
  EXPECT_EQ(best.value(), 1.0);
  const State state = state_of(best, training);
  BestWeights loaded(Metric::test_loss);
  load_state(loaded, state, training);
  EXPECT_EQ(loaded.epoch(), EpochIndex{2});
  EXPECT_EQ(loaded.value(), 1.0);
  EXPECT_EQ(loaded.parameters()[0].values<double>()[0], 10);
}

TEST(ObserverNames, AreOfOneObserverEach) {
  Trainer trainer = observed_trainer();
  trainer.add_observer<Counter>();
  const std::string refused =
      "there is an observer 'counter' already; accepted: another name, as in "
      "add_observer(observer, name)";
  EXPECT_EQ(error_of([&] { trainer.add_observer<Counter>(); }), refused);
  EXPECT_EQ(error_of([&] { trainer.add_named_observer<Counter>("counter", "other"); }), refused);
  EXPECT_EQ(error_of([&] { trainer.add_named_observer<Counter>("other"); }), "no error");
  EXPECT_EQ(error_of([&] { trainer.add_named_observer<Counter>("a/b"); }),
            "an observer called 'a/b'; accepted: a name without '/'");
  // What saves nothing needs none, however many there are.
  trainer.add_observer<test::Recorder>();
  trainer.add_observer<test::Recorder>();
  EXPECT_EQ(error_of([&] { trainer.fit(); }), "no error");
  EXPECT_EQ(error_of([&] { return trainer.state(); }), "no error");
}

TEST(ObserverNames, AreAskedForWhereSomethingWouldBeLost) {
  const std::string refused =
      "an observer without a name saves 'count', which nobody could load; accepted: one with a "
      "name(), or add_observer(observer, name)";
  Trainer trainer = observed_trainer();
  EXPECT_EQ(error_of([&] { trainer.add_observer<Counter>(""); }), refused);
  EXPECT_EQ(error_of([&] { trainer.add_observer(std::make_shared<Counter>(""), "mine"); }),
            "no error");
  // Also where there is something to save only later.
  const auto late = std::make_shared<Counter>("");
  late->silent = true;
  trainer.add_observer(late);
  EXPECT_EQ(error_of([&] { return trainer.state(); }), "no error");
  trainer.fit();
  EXPECT_EQ(error_of([&] { return trainer.state(); }), refused);
}

TEST(ObserverNames, OneThatIsNotAddedIsNotHeardOf) {
  Trainer trainer = observed_trainer(1);
  const auto nameless = std::make_shared<Counter>("");
  EXPECT_THROW(trainer.add_observer(nameless), Error);
  trainer.fit();
  EXPECT_EQ(nameless->count, 0);
}

// As before observers had names: what a state has of another observer is passed over, and one of
// which it has nothing says so where it needs it.
TEST(ObserverNames, AreLookedUpInAState) {
  Trainer first = observed_trainer();
  first.add_observer<EarlyStopping>(Metric::test_loss, PatienceOptions{});
  first.add_observer<Counter>();
  first.fit();
  const State state = first.state();
  Trainer without = observed_trainer();
  EXPECT_EQ(error_of([&] { without.load_state(state); }), "no error");
  Trainer with_another = observed_trainer();
  with_another.add_observer<test::Recorder>();
  with_another.add_named_observer<Counter>("another");
  EXPECT_EQ(error_of([&] { with_another.load_state(state); }),
            "the state has no 'observer/another/count'");
  Trainer best = observed_trainer();
  best.add_observer<BestWeights>(Metric::test_loss);
  EXPECT_EQ(error_of([&] { best.load_state(state); }),
            "the state has no 'observer/best-weights/patience'");
}

std::vector<double> weights_of(const Trainer& trainer) {
  const auto values = trainer.parameters().front().values<double>();
  return {values.begin(), values.end()};
}

// Sets the rate behind a step, and pauses behind a later one.
class SetsTheRate final : public Observer {
 public:
  explicit SetsTheRate(double rate) : rate_(rate) {}
  void on_step(Training& training, const StepRecord& step) override {
    rates.push_back(step.learning_rate);
    if (step.plan.index == StepIndex{2}) training.set_learning_rate(rate_);
    if (step.plan.index == StepIndex{4}) training.pause();
  }

  std::vector<double> rates;

 private:
  double rate_;
};

// Before the rule: of batches of 8, 16 and 4 samples, for 8.
TEST(Rate, ThatAnObserverSetsHoldsFromTheNextStepOnAndInStates) {
  Trainer first = observed_trainer();
  const auto setting = first.add_observer<SetsTheRate>(0.5);
  first.fit();
  EXPECT_THAT(setting->rates, ElementsAre(0.1, 0.2, 0.05, 0.5, 1.0));
  const State state = parse_state(state_bytes(first.state()), "the state");
  first.fit();

  Trainer second = observed_trainer();
  const auto rest = second.add_observer<test::Recorder>();
  second.load_state(state);
  second.fit();
  EXPECT_EQ(rest->steps.front().learning_rate, 0.25);
  EXPECT_EQ(weights_of(second), weights_of(first));
}

TEST(Rate, IsANumberThatCanBeApplied) {
  for (const double rate : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    Trainer trainer = observed_trainer();
    trainer.add_observer<SetsTheRate>(rate);
    EXPECT_THAT(error_of([&] { trainer.fit(); }),
                StartsWith("learning rate " + std::string(rate < 0 ? "-1" : "NaN")));
  }
}

}  // namespace
}  // namespace rubato
