// What a program that uses the library can get wrong: an Error that says what would be accepted.

#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/observers.hpp>
#include <rubato/testing.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "train/around.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;

TrainOptions options_of_misuse() {
  return {.epochs = 1, .minibatch_size = 4, .cores = 2, .threads = 1};
}

Trainer trainer_to_misuse() {
  return Trainer(tiny_objective(), trace_of({16}), options_of_misuse());
}

// Calls a function at one place of a training.
class AtStep final : public Observer {
 public:
  explicit AtStep(std::function<void(Training&)> call) : call_(std::move(call)) {}
  void on_step(Training& training, const StepRecord&) override { call_(training); }

 private:
  std::function<void(Training&)> call_;
};

TEST(Misuse, OfANullObserver) {
  Trainer trainer = trainer_to_misuse();
  EXPECT_EQ(error_of([&] { trainer.add_observer(std::shared_ptr<Observer>()); }),
            "an observer is added that is null; accepted: any other");
}

TEST(Misuse, OfATrainerThatHasThrown) {
  Trainer trainer = trainer_to_misuse();
  trainer.add_observer<AtStep>([](Training&) { throw std::runtime_error("mine"); });
  EXPECT_THROW(trainer.fit(), std::runtime_error);
  const std::string again =
      " cannot be called after fit() has thrown; accepted: another trainer, which may load the "
      "state of this one where has_state()";
  EXPECT_EQ(error_of([&] { trainer.fit(); }), "fit()" + again);
  EXPECT_EQ(error_of([&] { trainer.load_state(State()); }), "load_state()" + again);
}

// What a user may set right is no end.
TEST(Misuse, ThatIsFoundBeforeTheFirstStepCanBeSetRight) {
  class Untested final : public test::Around {
   public:
    bool has_test() const override { return has_test_; }
    void promise_test() { has_test_ = true; }

   private:
    bool has_test_ = false;
  };
  TrainOptions options = options_of_misuse();
  options.schedule = "plateau";
  auto objective = std::make_unique<Untested>();
  Untested& untested = *objective;
  Trainer trainer(std::move(objective), trace_of({16}), options);
  EXPECT_THAT(error_of([&] { trainer.fit(); }), HasSubstr("there is no test set"));
  untested.promise_test();
  EXPECT_EQ(error_of([&] { trainer.fit(); }),
            "an objective says that it has a test, and has none; accepted: test() with has_test()");
}

TEST(Misuse, OfATrainerFromWithinItsFit) {
  Trainer trainer = trainer_to_misuse();
  std::vector<std::string> errors;
  trainer.add_observer<AtStep>([&](Training& training) {
    if (!errors.empty()) return;
    EXPECT_FALSE(trainer.has_state());
    errors = {
        error_of([&] { trainer.fit(); }), error_of([&] { trainer.add_observer<test::Recorder>(); }),
        error_of([&] { trainer.load_state(State()); }), error_of([&] { return trainer.state(); }),
        error_of([&] { return training.state(); })};
  });
  trainer.fit();
  const std::string inside = " was called in the middle of fit(); accepted: before or after it";
  const std::string between =
      "a state is taken between steps; accepted: in Observer::between_steps(), or outside of fit()";
  EXPECT_THAT(errors, ElementsAre("fit()" + inside, "add_observer()" + inside,
                                  "load_state()" + inside, between, between));
  EXPECT_TRUE(trainer.has_state());
}

TEST(Misuse, OfLoadStateAfterTraining) {
  Trainer trainer = trainer_to_misuse();
  trainer.fit();
  const State state = trainer.state();
  EXPECT_EQ(
      error_of([&] { trainer.load_state(state); }),
      "load_state() was called after 3 steps; accepted: before anything is trained or loaded");
  EXPECT_EQ(error_of([&] { trainer.fit(); }), "no error") << "that has changed nothing";
  Trainer other = trainer_to_misuse();
  other.load_state(state);
  EXPECT_THAT(error_of([&] { other.load_state(state); }), HasSubstr("after 3 steps"));
}

TEST(Misuse, OfATrainerThatHasNotLoadedAState) {
  Trainer trainer = trainer_to_misuse();
  EXPECT_EQ(error_of([&] { trainer.load_state(State()); }), "the state has no 'configuration'");
  EXPECT_FALSE(trainer.has_state());
  EXPECT_THAT(error_of([&] { trainer.fit(); }),
              HasSubstr("fit() cannot be called after load_state() has thrown"));
  EXPECT_THAT(error_of([&] { return trainer.state(); }), HasSubstr("there is no state"));
}

TEST(Misuse, OfATrainerThatWasMovedFrom) {
  Trainer trainer = trainer_to_misuse();
  Trainer other = std::move(trainer);
  EXPECT_EQ(error_of([&] { trainer.fit(); }),  // NOLINT(bugprone-use-after-move)
            "a trainer was used that was moved from; accepted: the one that it was moved to");
  EXPECT_EQ(error_of([&] { other.fit(); }), "no error");
}

// An objective of three numbers, to be made wrong.
class WrongObjective final : public ObjectiveOf<double> {
 public:
  std::int64_t samples() const override { return 16; }
  const std::vector<TrainedArray>& trained() const override { return arrays; }
  const std::vector<NamedArray>& parameters() const override { return all; }
  const std::vector<NamedArray>& buffers() const override { return more; }
  std::string fingerprint() const override { return "it"; }
  std::span<double> flat_parameters() override { return flat; }
  std::unique_ptr<Evaluator<double>> make_evaluator() override { return nullptr; }

  std::vector<double> flat = std::vector<double>(3);
  std::vector<TrainedArray> arrays{{.array = array("a", 2, 0), .end = 2},
                                   {.array = array("b", 1, 2), .end = 3}};
  std::vector<NamedArray> all{array("a", 2, 0), array("b", 1, 2)};
  std::vector<NamedArray> more;

  [[nodiscard]] NamedArray array(std::string name, std::int64_t size, std::size_t begin) {
    return {.name = std::move(name),
            .type = ElementType::f64,
            .shape = {size},
            .data = flat.data() + begin};
  }
};

std::string error_of_objective(const std::function<void(WrongObjective&)>& change) {
  auto objective = std::make_unique<WrongObjective>();
  change(*objective);
  return error_of([&] { Trainer(std::move(objective), trace_of({8}), options_of_misuse()); });
}

TEST(Misuse, OfAnObjectiveWhoseArraysAreNotItsParameters) {
  const std::string where =
      ", which is not where its data are; accepted: in flat_parameters(), each array from the end "
      "of the one before it";
  EXPECT_EQ(error_of_objective([](auto& o) { o.arrays.pop_back(); }),
            "the objective has 3 parameters, and its arrays in training end at 2; accepted: at "
            "least one, and arrays that cover all");
  EXPECT_EQ(error_of_objective([](auto& o) {
              o.arrays.clear();
              o.flat.clear();
            }),
            "the objective has 0 parameters, and its arrays in training end at 0; accepted: at "
            "least one, and arrays that cover all");
  EXPECT_EQ(error_of_objective([](auto& o) { o.arrays[1].end = 4; }),
            "the objective trains 'b', 1 values that end at 4 of 3" + where);
  EXPECT_EQ(error_of_objective([](auto& o) { o.arrays[1].end = 1; }),
            "the objective trains 'b', 1 values that end at 1 of 3" + where);
  EXPECT_EQ(error_of_objective([](auto& o) { o.arrays[0].array.shape = {5}; }),
            "the objective trains 'a', 5 values that end at 2 of 3" + where);
  EXPECT_EQ(error_of_objective([](auto& o) { o.arrays[1].array.data = o.flat.data(); }),
            "the objective trains 'b', 1 values that end at 3 of 3" + where);
  EXPECT_EQ(error_of_objective([](auto& o) { o.arrays[1].array.type = ElementType::f32; }),
            "the objective trains 'b' of type F32 among F64; accepted: F64");
  EXPECT_EQ(error_of_objective([](auto& o) { o.all[1].name = "a"; }),
            "the objective has two parameters called 'a'; accepted: names that differ");
  EXPECT_EQ(error_of_objective([](auto& o) {
              o.more = {o.all[0], o.all[0]};
            }),
            "the objective has two buffers called 'a'; accepted: names that differ");
  EXPECT_EQ(error_of_objective([](auto&) {}),
            "the objective makes no evaluator; accepted: one for each thread");
}

// As many as it says are never asked for.
TEST(Misuse, OfAnObjectiveWhoseEvaluatorsDoNotComputeSeveralMinibatchesAtOnce) {
  class SaysMore final : public test::Around {
   public:
    std::int64_t minibatches_at_once(std::int64_t) const override {
      return std::numeric_limits<std::int64_t>::max();
    }
  };
  TrainOptions options = options_of_misuse();
  options.cores = 1;
  Trainer trainer(std::make_unique<SaysMore>(), trace_of({8}), options);
  EXPECT_THAT(error_of([&] { trainer.fit(); }),
              HasSubstr("an objective says that it computes several minibatches at once, and its "
                        "evaluator does not; accepted: "));
}

TEST(Misuse, OfAnObjectiveThatIsNoneOfThoseTheLoopDrives) {
  class Bare final : public Objective {
   public:
    explicit Bare(ElementType type) : type_(type) {}
    ElementType type() const override { return type_; }
    std::int64_t samples() const override { return 16; }
    const std::vector<TrainedArray>& trained() const override { return arrays_; }
    const std::vector<NamedArray>& parameters() const override { return all_; }
    std::string fingerprint() const override { return "it"; }

   private:
    ElementType type_;
    std::vector<TrainedArray> arrays_;
    std::vector<NamedArray> all_;
  };
  const auto error = [](ElementType type) {
    return error_of(
        [&] { Trainer(std::make_unique<Bare>(type), trace_of({8}), options_of_misuse()); });
  };
  EXPECT_EQ(error(ElementType::f16),
            "the objective trains parameters of type F16; accepted: F32, F64");
  EXPECT_THAT(error(ElementType::f32), HasSubstr("accepted: one that derives from ObjectiveOf"));
  EXPECT_THAT(error(ElementType::f64), HasSubstr("accepted: one that derives from ObjectiveOf"));
}

TEST(Misuse, OfFunctionsThatAreEmptyOrGiveNothing) {
  const auto error = [](const std::function<void(TrainOptions&)>& change) {
    TrainOptions options = options_of_misuse();
    return error_of([&] {
      change(options);
      Trainer(tiny_objective(), trace_of({16}), options);
    });
  };
  EXPECT_EQ(error([](auto& o) { o.own_schedule = [] { return std::unique_ptr<LrSchedule>(); }; }),
            "own_schedule makes no schedule; accepted: any but null");
  EXPECT_EQ(error([](auto& o) { o.groups = {{.name = "mine", .takes = {}}}; }),
            "parameter group 'mine' has no function that says what it takes; accepted: "
            "ParameterGroup::takes");
  EXPECT_EQ(error([](auto& o) {
              RuleRegistry rules;
              rules.add("mine", RuleRegistry::Maker([](Spec&) { return nullptr; }));
              o.rule = rules.choose("mine");
            }),
            "nothing makes rule 'mine'; accepted: a maker that gives a rule");
  EXPECT_EQ(error_of([] { Monitor("*", 1, {}); }),
            "a monitor without a sink; accepted: a function that it calls");
  EXPECT_EQ(error_of([] { return Verification({}, 3); }),
            "nothing makes the trainers to compare; accepted: a function that does");
  EXPECT_EQ(error_of([] {
              const auto make = [](const auto&) { return trainer_to_misuse(); };
              static_cast<void>(Verification(make, 0));
            }),
            "0 steps to compare: at least 1 is needed");
}

TEST(Misuse, OfAnOptimizerByItself) {
  Workers workers(1);
  std::vector<double> parameters(3);
  const std::vector<double> gradients(2);
  const auto error = [&](std::size_t size, const OptimizerOptions& options) {
    const auto optimizer = make_optimizer<double>(options, ParameterLayout::whole(size), {});
    return error_of([&] {
      optimizer->step({.parameters = parameters, .gradient_sum = gradients, .rates = {}}, workers);
    });
  };
  EXPECT_EQ(error(3, {}),
            "an update of 3 parameters has 2 gradients, and the layout 3 values; accepted: as many "
            "of each");
  EXPECT_THAT(error(2, {.method = AdamOptions{}}), HasSubstr("and the layout 2 values"));
  EXPECT_EQ(error(3, {.method = LarsOptions{}}),
            "LARS needs the norms of 1 tensors and has those of 0; accepted: one of Update::layers "
            "for each");
}

}  // namespace
}  // namespace rubato
