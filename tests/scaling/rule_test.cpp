#include <cmath>

#include <gmock/gmock.h>

#include <rubato/core/error.hpp>
#include <rubato/scaling/rule.hpp>

namespace rubato {
namespace {

constexpr RuleInput kInput{.batch_size = 320,
                           .minibatch_size = 32,
                           .reference_batch_size = 128,
                           .base_learning_rate = 0.01};

TEST(Rules, ConstantIgnoresTheBatchSize) {
  const Rates rates = make_rule("constant")->rates(kInput);
  EXPECT_DOUBLE_EQ(rates.learning_rate, 0.01);
  EXPECT_DOUBLE_EQ(rates.update_rate, 0.01);
  EXPECT_DOUBLE_EQ(rates.weight_decay_factor, 1);
}

TEST(Rules, LinearFollowsTheBatchSize) {
  const Rates rates = make_rule("linear")->rates(kInput);
  EXPECT_DOUBLE_EQ(rates.learning_rate, 0.025);
  EXPECT_DOUBLE_EQ(rates.update_rate, 0.025);
  EXPECT_DOUBLE_EQ(rates.weight_decay_factor, 1);
}

TEST(Rules, RootFollowsItsSquareRoot) {
  const Rates rates = make_rule("root")->rates(kInput);
  EXPECT_DOUBLE_EQ(rates.learning_rate, 0.01 * std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(rates.update_rate, rates.learning_rate);
}

TEST(Rules, LinearMomentumSumsAndTakesTheRateOfAMinibatch) {
  const auto rule = make_rule("linear-momentum");
  EXPECT_EQ(rule->reduction(), GradientReduction::sum);
  const Rates rates = rule->rates(kInput);
  EXPECT_DOUBLE_EQ(rates.learning_rate, 0.025);
  EXPECT_DOUBLE_EQ(rates.update_rate, 0.0025);
  EXPECT_DOUBLE_EQ(rates.weight_decay_factor, 10);
  // The same step as the linear rule's where momentum is 0.
  EXPECT_DOUBLE_EQ(rates.update_rate * 10, rates.learning_rate);
}

TEST(Rules, EveryNameMakesARuleOfThatName) {
  ASSERT_EQ(rule_names().size(), 4U);
  for (const auto name : rule_names()) EXPECT_EQ(make_rule(name)->name(), name);
}

TEST(Rules, AllButLinearMomentumTakeTheMean) {
  for (const auto name : rule_names()) {
    EXPECT_EQ(make_rule(name)->reduction(),
              name == "linear-momentum" ? GradientReduction::sum : GradientReduction::mean);
  }
}

TEST(Rules, UnknownNamesAreAnErrorWithTheNearest) {
  try {
    static_cast<void>(make_rule("linaer"));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("unknown rule 'linaer'; did you mean 'linear'?"));
  }
}

}  // namespace
}  // namespace rubato
