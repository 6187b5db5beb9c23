// Rates of parameters by their names (TrainOptions::rate_factors).

#include "loop/train/step/rate_factors.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

using test::trace_of;

const std::vector<OptimizerOptions>& optimizers_of_all_forms() {
  static const std::vector<OptimizerOptions> all{
      {.momentum = 0.5, .weight_decay = 0.01},
      {.method = SgdOptions{.momentum_form = MomentumForm::mxnet}, .momentum = 0.5},
      {.method = LarsOptions{}, .weight_decay = 0.01},
      {.method = AdamOptions{.decoupled = true}, .weight_decay = 0.1},
      {.method = RmspropOptions{}},
      {.method = MuonOptions{}, .weight_decay = 0.1}};
  return all;
}

TrainOptions options_with(std::vector<RateFactor> factors, const OptimizerOptions& optimizer = {}) {
  return {.epochs = 2,
          .minibatch_size = 4,
          .learning_rate = 0.05,
          .reference_batch_size = 8,
          .optimizer = optimizer,
          .rate_factors = std::move(factors),
          .cores = 3,
          .threads = 2};
}

// Of a weight of three values and a bias.
Trainer trainer_with(const TrainOptions& options) {
  return Trainer(test::tiny_objective(), trace_of({8, 16, 4}), options);
}

std::vector<double> values_of(const Trainer& trainer, std::size_t parameter) {
  const auto values = trainer.parameters()[parameter].values<double>();
  return {values.begin(), values.end()};
}

ParameterGroup group_of_name(const std::string& name, double factor) {
  return {.name = name,
          .takes = [name](const NamedArray& array) { return array.name == name; },
          .options = {.learning_rate_factor = factor}};
}

TEST(RateFactors, AreReadAndWritten) {
  const std::vector<RateFactor> factors{{"head.*", 10}, {"stem.*", 0}, {"vectors", 0.5}};
  EXPECT_EQ(parse_rate_factors("head.*=10,stem.*=0.0,vectors=5e-1"), factors);
  EXPECT_EQ(to_text(factors), "head.*=10,stem.*=0,vectors=0.5");
  EXPECT_EQ(parse_rate_factors(to_text({{"third", 1.0 / 3}})).front().factor, 1.0 / 3);
  EXPECT_TRUE(parse_rate_factors("").empty());
}

TEST(RateFactors, AreThoseOfTheFirstPatternThatMatches) {
  const std::vector<RateFactor> factors{{"head.*", 10}, {"vectors", 2}, {"*", 0}};
  EXPECT_EQ(rate_factor_of({.name = "head.bias", .shape = {3}}, factors), 10);
  EXPECT_EQ(rate_factor_of({.name = "stem.bias", .shape = {3}}, factors), 2);
  EXPECT_EQ(rate_factor_of({.name = "stem.weight", .shape = {3, 1}}, factors), 0);
  EXPECT_EQ(rate_factor_of({.name = "stem.bias", .shape = {3}}, {{"head.*", 10}}), 1);
}

TEST(RateFactors, GiveTheRatesOfGroups) {
  for (const OptimizerOptions& optimizer : optimizers_of_all_forms()) {
    SCOPED_TRACE(optimizer_name(optimizer.method));
    Trainer by_name = trainer_with(options_with({{"b*", 4}, {"*", 0.5}}, optimizer));
    const auto found = test::recorded(by_name);
    TrainOptions options = options_with({}, optimizer);
    options.groups = {group_of_name("bias", 4), group_of_name("weight", 0.5)};
    Trainer in_groups = trainer_with(options);
    const auto wanted = test::recorded(in_groups);
    EXPECT_EQ(test::difference_of(by_name, in_groups), std::nullopt);
    Trainer plain = trainer_with(options_with({}, optimizer));
    plain.fit();
    EXPECT_NE(test::difference_of(by_name, plain), std::nullopt);
    // The rate in the records is that of the step.
    EXPECT_EQ(found->steps[0].learning_rate, 0.05);
    EXPECT_EQ(found->steps.back().learning_rate, wanted->steps.back().learning_rate);
    // Both factors apply.
    options.rate_factors = {{"bias", 0.25}, {"weight", 2}};
    Trainer both = trainer_with(options);
    both.fit();
    EXPECT_EQ(test::difference_of(both, plain), std::nullopt);
  }
}

// Groups would have gains and averages of their own.
TEST(RateFactors, OfOneChangeNoBitAndNothingThatIsMeasured) {
  for (const char* const rule : {"linear", "adascale"}) {
    TrainOptions options = options_with({}, {.momentum = 0.5, .weight_decay = 0.01});
    options.rule = rule;
    options.log_noise = true;
    Trainer without = trainer_with(options);
    const auto wanted = test::recorded(without);
    options.rate_factors = {{"bias", 1}};
    Trainer with = trainer_with(options);
    const auto found = test::recorded(with);
    EXPECT_EQ(test::difference_of(with, without), std::nullopt) << rule;
    ASSERT_EQ(found->steps.size(), wanted->steps.size());
    for (std::size_t i = 0; i < wanted->steps.size(); ++i) {
      EXPECT_EQ(found->steps[i].gain, wanted->steps[i].gain) << i;
      EXPECT_EQ(found->steps[i].measured_gain, wanted->steps[i].measured_gain) << i;
      EXPECT_EQ(found->steps[i].noise_scale, wanted->steps[i].noise_scale) << i;
    }
  }
}

TEST(RateFactors, OfZeroLeaveParametersAsTheyAre) {
  for (const OptimizerOptions& optimizer : optimizers_of_all_forms()) {
    for (const bool lookahead : {false, true}) {
      SCOPED_TRACE(optimizer_name(optimizer.method));
      TrainOptions options = options_with({{"weight", 0}}, optimizer);
      if (lookahead) options.lookahead.emplace().k = 2;
      Trainer trainer = trainer_with(options);
      const std::vector<double> weight = values_of(trainer, 0);
      const std::vector<double> bias = values_of(trainer, 1);
      trainer.fit();
      EXPECT_EQ(values_of(trainer, 0), weight);
      EXPECT_NE(values_of(trainer, 1), bias);
    }
  }
}

// Without momentum, what a parameter moves in a step is its gradient times its rate.
TEST(RateFactors, MayChangeInAForkButNotInAResume) {
  const auto values_after = [](const TrainOptions& options, const State& state,
                               std::int64_t steps) {
    Trainer trainer = trainer_with(options);
    trainer.fork(state);
    if (steps > 3) test::train_until(trainer, steps);
    return std::pair(values_of(trainer, 0), values_of(trainer, 1));
  };
  const TrainOptions before = options_with({{"bias", 3}});
  Trainer paused = trainer_with(before);
  test::train_until(paused, 3);
  const State state = paused.state();
  const auto [weight, bias] = values_after(before, state, 3);
  const auto [usual_weight, usual_bias] = values_after(options_with({}), state, 4);
  const auto [weight_then, bias_then] =
      values_after(options_with({{"weight", 2}, {"bias", 0}}), state, 4);
  EXPECT_EQ(bias_then, bias);
  EXPECT_NE(usual_bias, bias);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    EXPECT_NEAR(weight_then[i] - weight[i], 2 * (usual_weight[i] - weight[i]), 1e-14);
  }

  const auto error = [&](const TrainOptions& options) {
    return error_of([&] { trainer_with(options).load_state(state); });
  };
  EXPECT_EQ(error(before), "no error");
  EXPECT_THAT(error(options_with({})), HasSubstr("rate_factors was bias=3, is nothing"));
  EXPECT_THAT(error(options_with({{"bias", 2}})), HasSubstr("rate_factors was bias=3, is bias=2"));
}

TEST(RateFactors, AreFiniteAndNotNegative) {
  const auto error = [](double factor) {
    return error_of([&] { trainer_with(options_with({{"*", 1}, {"bias", factor}})); });
  };
  EXPECT_EQ(error(0), "no error");
  EXPECT_EQ(error(-0.5),
            "the learning rate of 'bias' has the factor -0.5: accepted are finite values of at "
            "least 0");
  EXPECT_NE(error(std::numeric_limits<double>::infinity()), "no error");
  EXPECT_NE(error(std::numeric_limits<double>::quiet_NaN()), "no error");
}

TEST(RateFactors, CanBeWrittenAsText) {
  const auto error = [](const std::string& pattern) {
    return error_of([&] { trainer_with(options_with({{"bias", 1}, {pattern, 2}})); });
  };
  EXPECT_EQ(error("a=b"), "no error");
  EXPECT_THAT(error("bias"), HasSubstr("'bias' has two factors"));
  EXPECT_THAT(error("[a,b]"), HasSubstr("'[a' is not of the form PATTERN=FACTOR"));
  EXPECT_THAT(error("a=1,b"), HasSubstr("a pattern has a comma"));
}

}  // namespace
}  // namespace rubato
