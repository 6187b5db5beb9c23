#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/numbers/rule.hpp>

#include "numbers/scaling/lbsgd_rule.hpp"
#include "numbers/scaling/rules.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr RuleInput kInput{.batch_size = 320,
                           .minibatch_size = 32,
                           .reference_batch_size = 128,
                           .base_learning_rate = 0.01};

// A step of 2.5 times the reference batch, of ten minibatches.
TEST(Rules, FollowTheBatchSize) {
  struct {
    const char* rule;
    double rate;
    double update_rate;
    double weight_decay_factor;
    double gain;
  } const all[]{{"constant", 0.01, 0.01, 1, 1},
                {"linear", 0.025, 0.025, 1, 2.5},
                {"root", 0.01 * std::sqrt(2.5), 0.01 * std::sqrt(2.5), 1, std::sqrt(2.5)},
                {"linear-momentum", 0.025, 0.0025, 10, 2.5}};
  for (const auto& expected : all) {
    SCOPED_TRACE(expected.rule);
    const Rates rates = RuleChoice(expected.rule).make()->rates(kInput);
    EXPECT_DOUBLE_EQ(rates.learning_rate, expected.rate);
    EXPECT_DOUBLE_EQ(rates.update_rate, expected.update_rate);
    EXPECT_DOUBLE_EQ(rates.weight_decay_factor, expected.weight_decay_factor);
    EXPECT_DOUBLE_EQ(rates.gain, expected.gain);
  }
}

// The last minibatch of a training may have fewer samples: its gradient is a part of the sum.
TEST(Rules, LinearMomentumCountsAShortMinibatchForWhatItHas) {
  RuleInput input = kInput;
  input.batch_size = 80;
  EXPECT_DOUBLE_EQ(RuleChoice("linear-momentum").make()->rates(input).weight_decay_factor, 2.5);
}

TEST(Rules, EveryNameMakesARuleOfThatName) {
  ASSERT_EQ(rule_names().size(), 7U);
  for (const auto name : rule_names()) EXPECT_EQ(RuleChoice(name).make()->name(), name);
}

TEST(Rules, AllButLinearMomentumTakeTheMean) {
  for (const auto name : rule_names()) {
    EXPECT_EQ(RuleChoice(name).make()->reduction(),
              name == "linear-momentum" ? GradientReduction::sum : GradientReduction::mean);
  }
}

TEST(Rules, RejectWhatTheyDoNotKnow) {
  const auto error = [](std::string_view spec) {
    return error_of([&] { return RuleChoice(spec).make(); });
  };
  EXPECT_THAT(error("linaer"), HasSubstr("unknown rule 'linaer'; did you mean 'linear'?"));
  EXPECT_EQ(error("linear:smoothing=0.5"),
            "unknown argument of linear 'smoothing'; accepted: ramp");
  EXPECT_EQ(error("adascale:smoothing=1"),
            "adascale: smoothing: '1' is out of range; accepted: a number from 0 to below 1");
  EXPECT_THAT(error("adascale:averaging=x"), HasSubstr("adascale: averaging: unknown value 'x'"));
  EXPECT_THAT(error("adascale:metric=x"), HasSubstr("adascale: metric: unknown value 'x'"));
  EXPECT_THAT(error("adascale:power=0"), HasSubstr("adascale: power: '0' is out of range"));
  EXPECT_THAT(error("lbsgd:warmup=cubic"), HasSubstr("lbsgd: warmup: unknown value 'cubic'"));
  EXPECT_EQ(error("linear:ramp=0"),
            "linear: ramp: '0' is out of range; accepted: a whole number from 1 to 1000000000");
}

TEST(Rules, RefuseArgumentsThatDoNothing) {
  const auto error = [](std::string_view spec) {
    return error_of([&] { return RuleChoice(spec).make(); });
  };
  EXPECT_EQ(error("lbsgd:warmup=lars"), "no error");
  EXPECT_EQ(
      error("lbsgd:warmup=lars,epochs=3"),
      "lbsgd: epochs: does nothing with warmup=lars, which has factors of the layers instead; "
      "accepted: with warmup=linear, power2 or sqrt");
  EXPECT_THAT(error("lbsgd:begin-epoch=1,warmup=lars"),
              HasSubstr("lbsgd: begin-epoch: does nothing with warmup=lars"));
  EXPECT_THAT(error("lbsgd:warmup=lars,updates-per-epoch=9"),
              HasSubstr("lbsgd: updates-per-epoch: does nothing with warmup=lars"));
  EXPECT_EQ(error("lbsgd:epochs=0"), "no error");
  for (const std::string argument : {"warmup=sqrt", "begin-epoch=1", "updates-per-epoch=9"}) {
    EXPECT_THAT(error("lbsgd:epochs=0," + argument),
                HasSubstr("does nothing with epochs=0; accepted: with epochs above 0"))
        << argument;
  }
  for (const std::string rule : {"constant:ramp=3", "lbsgd:warmup=lars,ramp=3"}) {
    EXPECT_THAT(error(rule), HasSubstr("ramp: does nothing where the rate does not change with the "
                                       "batch size; accepted: with another rule"))
        << rule;
  }
  EXPECT_EQ(error("adascale:smoothing=0"), "no error");
  EXPECT_THAT(error("adascale:smoothing=0,averaging=mean-first"),
              HasSubstr("averaging: does nothing with smoothing=0"));
}

TEST(AdaScaleRule, MeasuresInTheMetricThatItIsToldTo) {
  const auto gain_of = [](const char* spec, bool has_metric) {
    const std::array<GradientNorms, 1> groups{{{.minibatch_square = 2, .mean_square = 1}}};
    const std::array<GradientNorms, 1> in_metric{{{.minibatch_square = 5, .mean_square = 4}}};
    const auto rule = RuleChoice(spec).make();
    EXPECT_TRUE(rule->needs().group_norms);
    return rule
        ->rates({.batch_size = 64,
                 .minibatch_size = 32,
                 .reference_batch_size = 32,
                 .base_learning_rate = 0.1,
                 .groups = groups,
                 .metric_groups = has_metric ? std::span<const GradientNorms>(in_metric)
                                             : std::span<const GradientNorms>()})
        .gain;
  };
  // The variance of a minibatch is 2 in both; |g|^2 is 0 and 3.
  EXPECT_DOUBLE_EQ(gain_of("adascale", true), 2);
  EXPECT_DOUBLE_EQ(gain_of("adascale:metric=optimizer", true), (2.0 + 3) / (1 + 3));
  EXPECT_DOUBLE_EQ(gain_of("adascale:metric=optimizer", false), 1) << "nothing is measured yet";
  EXPECT_FALSE(RuleChoice("adascale").make()->needs().metric_norms);
  EXPECT_TRUE(RuleChoice("adascale:metric=optimizer,ramp=2").make()->needs().metric_norms);
}

// An epoch has four steps of scale 4.
TEST(AdaScaleRule, BecomesLinearWithinSoManyEpochs) {
  const std::array<GradientNorms, 1> groups{{{.minibatch_square = 5, .mean_square = 3}}};
  RuleInput step{.batch_size = 128,
                 .minibatch_size = 32,
                 .reference_batch_size = 32,
                 .base_learning_rate = 0.1,
                 .epoch_size = 512,
                 .groups = groups};
  const double measured = RuleChoice("adascale:smoothing=0").make()->rates(step).gain;
  ASSERT_GT(measured, 1);
  ASSERT_LT(measured, 2);
  const auto half = RuleChoice("adascale:smoothing=0,linear-after=0.5").make();
  const auto root = RuleChoice("adascale:smoothing=0,linear-after=0.5,power=0.5").make();
  for (const double gain : {std::sqrt(measured * 4), 4.0, 4.0}) {
    const Rates rates = half->rates(step);
    EXPECT_NEAR(rates.gain, gain, 1e-14);
    EXPECT_NEAR(rates.learning_rate, 0.1 * gain, 1e-15);
    EXPECT_NEAR(rates.group_factors[0], gain, 1e-14);
    EXPECT_NEAR(root->rates(step).learning_rate, 0.1 * std::sqrt(gain), 1e-15);
  }
  // A quarter of an epoch of two: an eighth of the way.
  EXPECT_NEAR(RuleChoice("adascale:smoothing=0,linear-after=2").make()->rates(step).gain,
              std::pow(measured, 0.875) * std::pow(4, 0.125), 1e-14);
  step.epoch_size = 0;
  EXPECT_EQ(error_of([&] { static_cast<void>(half->rates(step)); }),
            "rule adascale needs the samples of an epoch for linear-after");
}

TEST(AdaScaleRule, TakesAPowerOfTheGainForTheRate) {
  const std::array<GradientNorms, 1> groups{{{.minibatch_square = 3, .mean_square = 1}}};
  RuleInput step{.batch_size = 128,
                 .minibatch_size = 32,
                 .reference_batch_size = 32,
                 .base_learning_rate = 0.1,
                 .groups = groups};
  const auto plain = RuleChoice("adascale:smoothing=0").make();
  const auto root = RuleChoice("adascale:smoothing=0,power=0.5").make();
  const auto ramped = RuleChoice("adascale:smoothing=0,power=0.5,ramp=2").make();
  for (const std::int64_t batch : {64, 128, 128}) {
    step.batch_size = batch;
    const double gain = plain->rates(step).gain;
    const Rates rates = root->rates(step);
    EXPECT_EQ(rates.gain, gain);
    EXPECT_NEAR(rates.learning_rate, 0.1 * std::sqrt(gain), 1e-15);
    EXPECT_NEAR(rates.group_factors[0], std::sqrt(gain), 1e-14);
    EXPECT_EQ(rates.update_rate, 0.1);
  }
  // The ramp is one of the rate: from the root of the first gain half of the way to the second's.
  std::vector<double> factors;
  for (const std::int64_t batch : {64, 128, 128}) {
    step.batch_size = batch;
    factors.push_back(ramped->rates(step).learning_rate / 0.1);
  }
  EXPECT_NEAR(factors[1], (factors[0] + factors[2]) / 2, 1e-14);
  EXPECT_NEAR(factors[2], std::sqrt(plain->rates(step).gain), 1e-14);
  EXPECT_GT(factors[2], factors[0]);
}

TEST(Lbsgd, WarmsUpToItsEndAndNoFurther) {
  for (const LbsgdWarmup warmup : {LbsgdWarmup::linear, LbsgdWarmup::power2, LbsgdWarmup::sqrt}) {
    EXPECT_LT(lbsgd_factor(warmup, 4, 9.5, 10), 4);
    for (const double updates : {10.0, 10.5, 11.0, 100.0}) {
      EXPECT_EQ(lbsgd_factor(warmup, 4, updates, 10), 4) << updates;
    }
  }
}

TEST(Rules, HaveNoStateButTheirOwn) {
  EXPECT_TRUE(numbers_of(*RuleChoice("linear").make()).empty());
  EXPECT_EQ(error_of([] {
              load_numbers(*RuleChoice("linear").make(), std::vector<double>{1}, "rule linear");
            }),
            "the state of rule linear has 1 numbers; accepted: 0");
}

TEST(FunctionRule, IsAFactorOfTheUsersOwn) {
  RuleRegistry registry;
  registry.add("log", [](const RuleInput& step) { return 1 + std::log2(step.scale()); });
  const auto rule = registry.choose("log").make();
  EXPECT_EQ(rule->name(), "log");
  const double factor = 1 + std::log2(2.5);
  EXPECT_DOUBLE_EQ(rule->rates(kInput).learning_rate, 0.01 * factor);
  EXPECT_DOUBLE_EQ(rule->rates(kInput).update_rate, 0.01 * factor);
  EXPECT_DOUBLE_EQ(rule->rates(kInput).gain, factor);
  EXPECT_THAT(registry.names(), Contains("log"));
  EXPECT_EQ(error_of([&] { registry.add("log", [](const RuleInput&) { return 1.0; }); }),
            "there is a rule 'log' already");
  // The built-in ones are nobody's to change.
  EXPECT_THAT(rule_names(), Not(Contains("log")));
}

TEST(RuleRegistry, RefusesRulesThatCannotBeChosen) {
  RuleRegistry registry;
  const auto factor = [](const RuleInput&) { return 1.0; };
  for (const std::string name : {"", "mine:1", "mine,1", "a b"}) {
    EXPECT_EQ(error_of([&] { registry.add(name, factor); }),
              "'" + name +
                  "' is not a valid name of a rule; accepted: one without any of ':', ',', '+', "
                  "'=' and blanks");
  }
  const std::string nothing = "nothing makes the rule 'mine'; accepted: any maker but an empty one";
  EXPECT_EQ(error_of([&] { registry.add("mine", RuleRegistry::Maker()); }), nothing);
  EXPECT_EQ(error_of([&] { registry.add("mine", RuleRegistry::Factor()); }), nothing);
  EXPECT_EQ(error_of([&] { registry.add("mine", RuleRegistry::Answer()); }), nothing);
  EXPECT_THAT(registry.names(), Not(Contains("mine")));
}

TEST(RuleChoice, AnswersQuestionsAndMakesInstances) {
  int made = 0;
  RuleRegistry registry;
  registry.add("mine", RuleRegistry::Maker([&made](Spec& spec) {
                 ++made;
                 const double factor = spec.real("factor", 1, kPositive);
                 return std::make_unique<FunctionRule>(
                     "mine", [factor](const RuleInput&) { return factor; });
               }));
  const RuleChoice mine = registry.choose("mine:factor=3");
  EXPECT_EQ(made, 1);
  EXPECT_EQ(mine.text(), "mine:factor=3");
  EXPECT_EQ(mine.names(), std::vector<std::string>{"mine"});
  EXPECT_TRUE(mine->follows_batch_size());
  EXPECT_EQ(mine.make()->rates(kInput).gain, 3);
  EXPECT_NE(mine.make(), mine.make());
  EXPECT_EQ(made, 4) << "once for each instance";
  EXPECT_TRUE(RuleChoice("adascale")->needs().group_norms);
}

RuleInput step_of(std::int64_t batch) {
  RuleInput input = kInput;
  input.batch_size = batch;
  return input;
}

TEST(RampRule, MovesToTheNewRateStepByStep) {
  const auto rule = RuleChoice("linear:ramp=4").make();
  std::vector<double> rates;
  for (const std::int64_t batch : {128, 128, 640, 640, 640, 640, 640, 128, 128}) {
    const Rates step = rule->rates(step_of(batch));
    EXPECT_DOUBLE_EQ(step.update_rate, step.learning_rate);
    EXPECT_DOUBLE_EQ(step.gain * 0.01, step.learning_rate);
    rates.push_back(step.learning_rate);
  }
  EXPECT_THAT(rates, Pointwise(DoubleEq(), {0.01, 0.01, 0.02, 0.03, 0.04, 0.05, 0.05, 0.04, 0.03}));
}

TEST(RampRule, BeginsAnewWhereAnotherChangeFindsIt) {
  const auto rule = RuleChoice("linear:ramp=2").make();
  static_cast<void>(rule->rates(step_of(128)));
  EXPECT_DOUBLE_EQ(rule->rates(step_of(384)).learning_rate, 0.02);
  EXPECT_DOUBLE_EQ(rule->rates(step_of(128)).learning_rate, 0.015);
  EXPECT_DOUBLE_EQ(rule->rates(step_of(128)).learning_rate, 0.01);
}

}  // namespace
}  // namespace rubato
