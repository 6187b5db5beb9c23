// Whatever throws, wherever it does: the state of the last complete step can be taken, and another
// trainer goes on from it to the same bits.

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/recorded.hpp"
#include "train/around.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;

class Failure : public std::runtime_error {
 public:
  Failure() : std::runtime_error("it fails") {}
};

// Fails in what happens at one step, as often as it is asked until then.
struct Planted {
  std::int64_t step = -1;
  // What it is that fails; "" is nothing.
  std::string place;

  void at(std::string_view here, std::int64_t now) const {
    if (here == place && now == step) throw Failure();
  }
};

// The tiny objective, whose gradients depend on the loss scale, too.
class FragileObjective final : public test::Around {
 public:
  FragileObjective(const Planted& planted, bool scales)
      : Around([planted](auto& inner, const auto& minibatch, const auto& leaf, auto& progress) {
          const double loss = inner.evaluate(minibatch, leaf, progress);
          leaf.gradient[0] += 1e-3 * minibatch.loss_scale;
          if (minibatch.stream.minibatch % 3 == 2) planted.at("evaluate", minibatch.stream.step);
          return loss;
        }),
        planted_(planted),
        scales_(scales) {}
  bool has_test() const override { return true; }
  Evaluation test(Workers& workers, const EvaluationOptions& options,
                  std::string_view when) override {
    planted_.at("test", step_);
    return inner().test(workers, options, when);
  }
  std::optional<LossScaleOptions> loss_scale() const override {
    if (!scales_) return std::nullopt;
    return LossScaleOptions{.initial = 8, .interval = 2};
  }
  void begin_minibatches(Workers& workers) override {
    ++step_;
    planted_.at("begin_minibatches", step_);
    inner().begin_minibatches(workers);
  }
  void move_averages(std::span<const double> sums, std::int64_t minibatches) override {
    planted_.at("move_averages", step_);
    inner().move_averages(sums, minibatches);
  }

 private:
  Planted planted_;
  bool scales_;
  std::int64_t step_ = -1;
};

// A rule that has learned something before it fails.
class FragileRule final : public Rule {
 public:
  explicit FragileRule(Planted planted) : planted_(std::move(planted)) {}
  std::string_view name() const override { return "fragile"; }
  Rates rates(const RuleInput& input) override {
    calls_ += 1;
    planted_.at("rates", static_cast<std::int64_t>(calls_) - 1);
    return scaled(input, 1 + calls_ / 8);
  }
  void visit_state(NumberVisitor& numbers) override { numbers.number(calls_); }

 private:
  Planted planted_;
  double calls_ = 0;
};

class FragileSchedule final : public LrSchedule {
 public:
  explicit FragileSchedule(Planted planted) : planted_(std::move(planted)) {}
  double factor(double position) const override {
    planted_.at("factor", static_cast<std::int64_t>(position));
    return 1 + heard_ / 8;
  }
  void observe(double) override {
    heard_ += 1;
    planted_.at("observe", static_cast<std::int64_t>(heard_));
  }
  void visit_state(NumberVisitor& numbers) override { numbers.number(heard_); }

 private:
  Planted planted_;
  double heard_ = 0;
};

// Fails in whatever it hears of a step, or of the epoch that follows it.
class FragileObserver final : public Observer {
 public:
  explicit FragileObserver(Planted planted) : planted_(std::move(planted)) {}
  void on_epoch_begin(Training& training, const EpochStart&) override {
    planted_.at("on_epoch_begin", training.result().steps);
  }
  bool wants_gradients(const StepPlan& step) const override {
    planted_.at("wants_gradients", step.index.value());
    return planted_.place == "on_gradients";
  }
  void on_gradients(Training& training, const StepPlan& step,
                    std::span<const NamedArray>) override {
    if (step.index.value() == planted_.step)
      training.stop("a step that is not taken stops nothing");
    planted_.at("on_gradients", step.index.value());
  }
  void on_fault(Training&, const StepPlan& step, std::span<const FaultRecord>,
                std::int64_t) override {
    planted_.at("on_fault", step.index.value());
  }
  void on_step(Training&, const StepRecord& step) override {
    planted_.at("on_step", step.plan.index.value());
  }
  void on_evaluate(Training& training, const EpochRecord&) override {
    planted_.at("on_evaluate", training.result().steps);
  }
  void on_epoch(Training& training, const EpochRecord&) override {
    planted_.at("on_epoch", training.result().steps);
  }
  void between_steps(Training& training) override {
    planted_.at("between_steps", training.result().steps);
  }

 private:
  Planted planted_;
};

// What each of the others hears.
class Listener final : public Observer {
 public:
  void on_epoch_begin(Training&, const EpochStart&) override { log += "b"; }
  void on_step(Training&, const StepRecord&) override { log += "s"; }
  void on_evaluate(Training&, const EpochRecord&) override { log += "v"; }
  void on_epoch(Training&, const EpochRecord&) override { log += "e"; }
  void between_steps(Training&) override { log += "."; }
  std::string log;
};

// Two epochs of 3 steps: 5, 1 and 1 minibatches, then 5 and 1; and another of 7 steps.
const std::vector<std::int64_t> kFragileRows{20, 4, 4, 20, 20, 4, 4, 16};

struct FragileOptions {
  std::string rule = "adascale";
  std::string reduce = "tree";
  std::int64_t cores = 3;
  int threads = 2;
  bool scales_loss = false;
  Treatment of_mean = Treatment::keep;
};

RuleRegistry with_fragile(const Planted& planted) {
  RuleRegistry rules;
  rules.add("fragile", RuleRegistry::Maker(
                           [planted](Spec&) { return std::make_unique<FragileRule>(planted); }));
  return rules;
}

Trainer fragile_trainer(const Planted& planted, const FragileOptions& fragile = {}) {
  TrainOptions options{.epochs = 3,
                       .minibatch_size = 4,
                       .learning_rate = 0.05,
                       .reference_batch_size = 8,
                       .rule = with_fragile(planted).choose(fragile.rule),
                       .schedule_unit = ScheduleUnit::steps,
                       .optimizer = {.momentum = 0.5},
                       .log_noise = true,
                       .cores = fragile.cores,
                       .reduce = fragile.reduce,
                       .exact = is_reproducible(fragile.reduce),
                       .threads = fragile.threads};
  options.lookahead.emplace().k = 3;
  options.adjustments.on_batch_change.mean = fragile.of_mean;
  options.own_schedule = [planted] { return std::make_unique<FragileSchedule>(planted); };
  if (planted.place == "on_fault") {
    options.faults.planned = {{.core = CoreRank{0}, .step = StepIndex{planted.step}}};
  }
  return Trainer(std::make_unique<FragileObjective>(planted, fragile.scales_loss),
                 trace_of(kFragileRows), options);
}

// That training fails where it is planted, and that another trainer goes on from the state after
// `steps` steps as if nothing had been.
void expect_goes_on(const Planted& planted, std::int64_t steps,
                    const FragileOptions& options = {}) {
  SCOPED_TRACE(planted.place + " at step " + std::to_string(planted.step) + ", rule " +
               options.rule + ", reducer " + options.reduce);
  Trainer whole = fragile_trainer({}, options);
  const auto all = test::recorded(whole);

  Trainer failing = fragile_trainer(planted, options);
  failing.add_observer<FragileObserver>(planted);
  EXPECT_THROW(failing.fit(), std::runtime_error);
  ASSERT_TRUE(failing.has_state());
  const State state = parse_state(state_bytes(failing.state()), "the state");

  Trainer second = fragile_trainer({}, options);
  const auto rest = second.add_observer<test::Recorder>();
  second.load_state(state);
  EXPECT_EQ(second.result().steps, steps);
  second.fit();
  EXPECT_EQ(test::difference_of(whole, second), std::nullopt);
  EXPECT_EQ(second.result().stopped, "");
  EXPECT_EQ(second.result().epochs, 3);
  EXPECT_EQ(second.result().samples, whole.result().samples);
  EXPECT_EQ(second.result().iterations, whole.result().iterations);
  ASSERT_EQ(rest->steps.size() + static_cast<std::size_t>(steps), all->steps.size());
  for (std::size_t i = 0; i < rest->steps.size(); ++i) {
    const StepRecord& expected = all->steps[static_cast<std::size_t>(steps) + i];
    EXPECT_EQ(rest->steps[i].loss, expected.loss);
    EXPECT_EQ(rest->steps[i].learning_rate, expected.learning_rate);
    EXPECT_EQ(rest->steps[i].noise_scale, expected.noise_scale);
    EXPECT_EQ(rest->steps[i].loss_scale, expected.loss_scale);
  }
  if (!rest->epochs.empty()) {
    EXPECT_EQ(rest->epochs.front().train_loss,
              all->epochs[all->epochs.size() - rest->epochs.size()].train_loss);
  }
}

constexpr std::int64_t kFragileSteps = 12;

TEST(Exceptions, OfAnEvaluatorLeaveTheStepBefore) {
  for (const std::string_view reduce : reducer_names()) {
    for (const std::int64_t cores : {1, 2, 5}) {
      // The order of what is not reproducible is one thread's.
      const int threads = is_reproducible(reduce) ? 2 : 1;
      for (const std::int64_t step : {0, 3, 4}) {
        expect_goes_on({.step = step, .place = "evaluate"}, step,
                       {.reduce = std::string(reduce), .cores = cores, .threads = threads});
      }
    }
  }
}

// At every step: in the first, in the last of an epoch, of one minibatch and of several.
TEST(Exceptions, BeforeTheUpdateLeaveTheStepBefore) {
  for (std::int64_t step = 0; step < kFragileSteps; ++step) {
    for (const char* place : {"begin_minibatches", "factor", "wants_gradients", "on_gradients"}) {
      for (const char* rule : {"adascale", "lbsgd:warmup=lars", "fragile"}) {
        expect_goes_on({.step = step, .place = place}, step, {.rule = rule});
      }
      expect_goes_on({.step = step, .place = place}, step, {.scales_loss = true});
    }
    // A change of the batch is one from the last batch that was applied.
    expect_goes_on({.step = step, .place = "on_gradients"}, step, {.of_mean = Treatment::rescale});
    expect_goes_on({.step = step, .place = "rates"}, step, {.rule = "fragile"});
    expect_goes_on({.step = step, .place = "rates"}, step,
                   {.rule = "fragile", .scales_loss = true});
    expect_goes_on({.step = step, .place = "on_fault"}, step);
  }
}

TEST(Exceptions, OfAnObserverLeaveTheStepItHeardOf) {
  for (std::int64_t step = 0; step < kFragileSteps; ++step) {
    expect_goes_on({.step = step, .place = "on_step"}, step + 1);
    expect_goes_on({.step = step, .place = "on_step"}, step + 1, {.scales_loss = true});
    expect_goes_on({.step = step + 1, .place = "between_steps"}, step + 1);
  }
}

// The steps after which an epoch ends.
const std::vector<std::int64_t> kFragileEnds{4, 8, 12};

TEST(Exceptions, AtTheEndOfAnEpochLeaveTheEpochOrTheStepBefore) {
  std::int64_t epoch = 0;
  std::int64_t begin = 0;
  for (const std::int64_t end : kFragileEnds) {
    ++epoch;
    expect_goes_on({.step = begin, .place = "on_epoch_begin"}, begin);
    expect_goes_on({.step = end, .place = "on_evaluate"}, end);
    expect_goes_on({.step = end, .place = "on_epoch"}, end);
    expect_goes_on({.step = end - 1, .place = "test"}, end);
    expect_goes_on({.step = epoch, .place = "observe"}, end);
    begin = end;
  }
}

TEST(Exceptions, AreHeardOfByNoOtherObserver) {
  const auto heard = [](const Planted& planted) {
    Trainer trainer = fragile_trainer(planted);
    const auto before = trainer.add_observer<Listener>();
    trainer.add_observer<FragileObserver>(planted);
    trainer.add_observer<FragileObserver>(planted);
    const auto after = trainer.add_observer<Listener>();
    EXPECT_THROW(trainer.fit(), Failure);
    EXPECT_EQ(before->log, after->log) << planted.place;
    return before->log;
  };
  EXPECT_EQ(heard({.step = 0, .place = "on_epoch_begin"}), "b");
  EXPECT_EQ(heard({.step = 1, .place = "on_step"}), "bs.s");
  EXPECT_EQ(heard({.step = 1, .place = "between_steps"}), "bs.");
  EXPECT_EQ(heard({.step = 4, .place = "on_evaluate"}), "bs.s.s.s.ve");
  EXPECT_EQ(heard({.step = 4, .place = "on_epoch"}), "bs.s.s.s.ve");
  EXPECT_EQ(heard({.step = 1, .place = "on_gradients"}), "bs.");
}

TEST(Exceptions, OfWhichTheFirstIsThrown) {
  class Saying final : public Observer {
   public:
    explicit Saying(std::string what) : what_(std::move(what)) {}
    void on_step(Training&, const StepRecord&) override { throw Error(what_); }

   private:
    std::string what_;
  };
  Trainer trainer = fragile_trainer({});
  trainer.add_observer<Saying>("one");
  trainer.add_observer<Saying>("two");
  EXPECT_EQ(error_of([&] { trainer.fit(); }), "one");
}

TEST(Exceptions, InTheMiddleOfTheUpdateLeaveNoState) {
  Trainer trainer = fragile_trainer({.step = 5, .place = "move_averages"});
  EXPECT_THROW(trainer.fit(), Failure);
  EXPECT_FALSE(trainer.has_state());
  EXPECT_EQ(error_of([&] { return trainer.state(); }),
            "there is no state: the update at epoch 2, step 6 of the run was interrupted by "
            "'it fails'; accepted: an earlier state");
  EXPECT_EQ(trainer.result().steps, 5);
}

// What is not finite is not applied, and the state is that of the step before.
TEST(Exceptions, OfADivergenceLeaveTheStepBefore) {
  for (const char* rule : {"adascale", "fragile"}) {
    const auto make = [&] {
      TrainOptions options{.epochs = 2,
                           .minibatch_size = 4,
                           .learning_rate = 1e200,
                           .reference_batch_size = 8,
                           .rule = with_fragile({}).choose(rule),
                           .threads = 2};
      return Trainer(tiny_objective(), trace_of({8, 16, 4}), options);
    };
    Trainer first = make();
    EXPECT_THROW(first.fit(), Diverged);
    ASSERT_TRUE(first.has_state());
    const std::int64_t steps = first.result().steps;
    ASSERT_GE(steps, 1);
    Trainer second = make();
    second.load_state(first.state());
    EXPECT_THROW(second.fit(), Diverged);
    EXPECT_EQ(second.result().steps, steps);
    EXPECT_EQ(second.state(), first.state());
  }
}

}  // namespace
}  // namespace rubato
