// The momentum of a schedule, in the steps of a training.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/optimizer.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/testing.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;

const std::string kCycle = "one-cycle:total=5,peak=2";
const std::string kRateAlone = kCycle + ",cycle-momentum=false";

TrainOptions cycling_options(std::string_view optimizer, const std::string& schedule = kCycle) {
  return {.epochs = 2,
          .minibatch_size = 4,
          .learning_rate = 0.02,
          .reference_batch_size = 8,
          .rule = "constant",
          .schedule = schedule,
          .schedule_unit = ScheduleUnit::steps,
          .optimizer = parse_optimizer(optimizer, {.momentum = 0.5}),
          .cores = 3,
          .threads = 2};
}

Trainer cycling_trainer(const TrainOptions& options) {
  return {tiny_objective(), trace_of({8, 16, 4}), options};
}

std::vector<OptimizerAnswer> answers_of(const TrainOptions& options) {
  Trainer trainer = cycling_trainer(options);
  std::vector<OptimizerAnswer> answers;
  for (const StepRecord& step : test::recorded(trainer)->steps) answers.push_back(step.optimizer);
  return answers;
}

std::vector<double> trained_weights(const TrainOptions& options) {
  Trainer trainer = cycling_trainer(options);
  trainer.fit();
  const auto values = trainer.parameters()[0].values<double>();
  return {values.begin(), values.end()};
}

TEST(ScheduledMomentum, IsThatOfEveryOptimizerWhichHasOne) {
  const auto cycle = ScheduleChoice(kCycle).make({});
  struct Case {
    const char* name;
    bool momentum;
    bool beta1;
  };
  for (const auto& [name, momentum, beta1] :
       {Case{"sgd", true, false}, Case{"sgd:form=mxnet", true, false}, Case{"lars", true, false},
        Case{"rmsprop", true, false}, Case{"adam", false, true}, Case{"adamw", false, true},
        Case{"muon", true, true}}) {
    SCOPED_TRACE(name);
    const std::vector<OptimizerAnswer> answers = answers_of(cycling_options(name));
    ASSERT_GE(answers.size(), 5U);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const std::optional<double> now = cycle->momentum(static_cast<double>(i));
      const OptimizerAnswer expected{.momentum = momentum ? now : std::nullopt,
                                     .beta1 = beta1 ? now : std::nullopt};
      EXPECT_EQ(answers[i], expected) << i;
    }
    for (const OptimizerAnswer& answer : answers_of(cycling_options(name, kRateAlone))) {
      EXPECT_EQ(answer, OptimizerAnswer());
    }
    EXPECT_NE(trained_weights(cycling_options(name)),
              trained_weights(cycling_options(name, kRateAlone)));
  }
}

// A rule of the user's own that answers the same numbers makes the same updates.
TEST(ScheduledMomentum, IsUsedAsIfTheRuleHadAnsweredIt) {
  for (const std::string_view name : {"sgd", "adamw"}) {
    TrainOptions options = cycling_options(name, kRateAlone);
    RuleRegistry rules;
    rules.add("same", [name, step = 0.0,
                       cycle = std::shared_ptr<LrSchedule>(ScheduleChoice(kCycle).make({}))](
                          const RuleInput& input) mutable {
      Rates rates = Rule::scaled(input, 1);
      (name == "sgd" ? rates.optimizer.momentum : rates.optimizer.beta1) = cycle->momentum(step++);
      return rates;
    });
    options.rule = rules.choose("same");
    EXPECT_EQ(trained_weights(options), trained_weights(cycling_options(name))) << name;
  }
}

TEST(ScheduledMomentum, IsWhatRulesAndMemoriesBeginWith) {
  TrainOptions options = cycling_options("sgd");
  options.adjustments.memories.momentum = true;
  // The second step has 16 samples, where the reference batch has 8.
  const double second = ScheduleChoice(kCycle).make({})->momentum(1).value();
  EXPECT_DOUBLE_EQ(answers_of(options).at(1).momentum.value(), second * second);
  options = cycling_options("adam");
  options.rule = "root-adam";
  EXPECT_DOUBLE_EQ(answers_of(options).at(1).beta1.value(), second * second);
}

TEST(ScheduledMomentum, LeavesGroupsTheirOwn) {
  const auto weights = [](const std::string& schedule) {
    TrainOptions options = cycling_options("sgd", schedule);
    options.groups = {{.name = "all",
                       .takes = [](const NamedArray&) { return true; },
                       .options = {.momentum = 0.5}}};
    return trained_weights(options);
  };
  EXPECT_EQ(weights(kCycle), weights(kRateAlone));
}

TEST(ScheduledMomentum, HasTheSameBitsWhoeverComputes) {
  for (const std::string_view name : {"sgd", "adamw", "muon"}) {
    const auto make = [&](const auto& change) {
      TrainOptions options = cycling_options(name);
      options.rule = "linear";
      change(options);
      return cycling_trainer(options);
    };
    EXPECT_EQ(test::difference_in_bits(make, 6), std::nullopt) << name;
  }
}

TEST(ScheduledMomentum, NeedsAnOptimizerThatHasOne) {
  const std::string refusal =
      "schedule: it moves the momentum, and the optimizer has none; accepted: with a momentum "
      "above 0, with optimizer adam, adamw or muon, or with cycle-momentum=false";
  const auto error = [](const TrainOptions& options) {
    return error_of([&] { cycling_trainer(options); });
  };
  EXPECT_EQ(error(cycling_options("adagrad")), refusal);
  EXPECT_EQ(error(cycling_options("adagrad", kRateAlone)), "no error");
  TrainOptions still = cycling_options("sgd");
  still.optimizer.momentum = 0;
  EXPECT_EQ(error(still), refusal);
  for (const std::string_view name : optimizer_names()) {
    for (const double momentum : {0., 0.5}) {
      const OptimizerOptions options = parse_optimizer(name, {.momentum = momentum});
      const OptimizerNumbers numbers =
          make_optimizer<double>(options, ParameterLayout::whole(1), {})->numbers();
      EXPECT_EQ(has_momentum(options), numbers.momentum || numbers.beta1) << name;
    }
  }
}

class TooMuch final : public LrSchedule {
 public:
  double factor(double) const override { return 1; }
  std::optional<double> momentum(double position) const override { return position / 2; }
};

TEST(ScheduledMomentum, OfTheUsersOwnIsChecked) {
  TrainOptions options = cycling_options("sgd", "constant");
  options.own_schedule = [] { return std::make_unique<TooMuch>(); };
  Trainer trainer = cycling_trainer(options);
  EXPECT_EQ(error_of([&] { trainer.fit(); }),
            "schedule of your own gave the momentum 1 at epoch 1, step 3 of the run; accepted: "
            "from 0 to below 1");
}

}  // namespace
}  // namespace rubato
