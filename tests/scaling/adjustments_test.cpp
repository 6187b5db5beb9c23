#include <cmath>
#include <string>

#include <gmock/gmock.h>

#include <rubato/numbers/adjustments.hpp>
#include <rubato/numbers/rule.hpp>

#include "numbers/scaling/rate_adjuster.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr OptimizerNumbers kSgd{.momentum = 0.9, .has_mean = true};
constexpr OptimizerNumbers kAdam{
    .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6, .has_mean = true, .has_squares = true};

RuleInput step_of(std::int64_t batch, const OptimizerNumbers& optimizer) {
  return {.batch_size = batch,
          .minibatch_size = 32,
          .reference_batch_size = 128,
          .base_learning_rate = 0.01,
          .optimizer = optimizer};
}

// The adjusted answers of `rule`, step by step.
class Adjusted {
 public:
  Adjusted(const char* rule, const RuleAdjustments& adjustments)
      : rule_(RuleChoice(rule).make()), adjuster_(adjustments) {}

  Rates step(std::int64_t batch, const OptimizerNumbers& optimizer, double base = 0.01) {
    RuleInput input = step_of(batch, optimizer);
    input.base_learning_rate = base;
    return adjuster_.adjust(rule_->rates(input), input, *rule_);
  }
  [[nodiscard]] std::string refusal(const OptimizerNumbers& optimizer) const {
    return error_of([&] { adjuster_.require_effect(optimizer, *rule_); });
  }

 private:
  std::unique_ptr<Rule> rule_;
  RateAdjuster adjuster_;
};

TEST(RootAdam, FollowsMalladi) {
  const Rates rates = RuleChoice("root-adam").make()->rates(step_of(512, kAdam));
  EXPECT_DOUBLE_EQ(rates.learning_rate, 0.02);
  EXPECT_DOUBLE_EQ(*rates.optimizer.beta1, 0.9 * 0.9 * 0.9 * 0.9);
  EXPECT_DOUBLE_EQ(*rates.optimizer.beta2, 0.99 * 0.99 * 0.99 * 0.99);
  EXPECT_DOUBLE_EQ(*rates.optimizer.epsilon, 5e-7);
  EXPECT_FALSE(rates.optimizer.momentum || rates.optimizer.mean_factor);
  EXPECT_EQ(rates.weight_decay_factor, 1);
  // A quarter of the reference batch has the fourth root.
  EXPECT_DOUBLE_EQ(*RuleChoice("root-adam").make()->rates(step_of(32, kAdam)).optimizer.beta1,
                   std::sqrt(std::sqrt(0.9)));
}

TEST(RootAdam, HasThePublishedBetasWithinTheirRange) {
  const auto rule = RuleChoice("root-adam:betas=published").make();
  const OptimizerAnswer four = rule->rates(step_of(512, kAdam)).optimizer;
  EXPECT_DOUBLE_EQ(*four.beta1, 0.6);
  EXPECT_DOUBLE_EQ(*four.beta2, 0.96);
  // 1 - 16 x 0.1 is negative.
  const OptimizerAnswer sixteen = rule->rates(step_of(2048, kAdam)).optimizer;
  EXPECT_EQ(*sixteen.beta1, 0);
  EXPECT_DOUBLE_EQ(*sixteen.beta2, 0.84);
}

TEST(RootAdam, IsRefusedForOtherOptimizers) {
  EXPECT_EQ(Adjusted("root-adam", {}).refusal(kSgd),
            "rule root-adam answers the betas of Adam, which the optimizer does not have; "
            "accepted: with optimizer adam, adamw or muon");
  EXPECT_EQ(Adjusted("root-adam", {}).refusal(kAdam), "no error");
  EXPECT_EQ(Adjusted("root-adam", {.memories = {.beta2 = true}}).refusal(kAdam),
            "rule root-adam answers the betas itself; accepted: without betas in samples");
}

TEST(Memories, CountSamples) {
  Adjusted sgd("linear", {.memories = {.momentum = true}});
  EXPECT_DOUBLE_EQ(*sgd.step(256, kSgd).optimizer.momentum, 0.81);
  EXPECT_DOUBLE_EQ(*sgd.step(64, kSgd).optimizer.momentum, std::sqrt(0.9));
  // Ten velocities' worth of a gradient stay ten: the linear rule's rate is S lr.
  const Rates rates = sgd.step(256, kSgd);
  EXPECT_DOUBLE_EQ(rates.update_rate / (1 - *rates.optimizer.momentum), 0.02 / (1 - 0.9));
  EXPECT_EQ(rates.learning_rate, rates.update_rate) << "what is reported is what was used";
  // It is the same bits at the reference batch.
  EXPECT_EQ(sgd.step(128, kSgd).update_rate, 0.01);
  EXPECT_EQ(*sgd.step(128, kSgd).optimizer.momentum, 0.9);
  // Muon averages gradients, and has the rate of the rule.
  const OptimizerNumbers muon{.momentum = 0.9, .beta1 = 0.9, .has_mean = true};
  const Rates of_muon = sgd.step(256, muon);
  EXPECT_DOUBLE_EQ(*of_muon.optimizer.momentum, 0.81);
  EXPECT_EQ(of_muon.update_rate, of_muon.learning_rate);
  Adjusted adam("root", {.memories = {.beta2 = true}});
  const OptimizerAnswer answer = adam.step(256, kAdam).optimizer;
  EXPECT_DOUBLE_EQ(*answer.beta2, 0.9801);
  EXPECT_FALSE(answer.beta1 || answer.momentum || answer.epsilon);
}

TEST(Memories, AreThoseOfTheOptimizer) {
  EXPECT_THAT(Adjusted("linear", {.memories = {.momentum = true}}).refusal(kAdam),
              HasSubstr("accepted: with a momentum above 0"));
  EXPECT_THAT(Adjusted("linear", {.memories = {.beta1 = true}}).refusal(kSgd),
              HasSubstr("accepted: with optimizer adam, adamw or muon"));
  EXPECT_THAT(Adjusted("linear", {.memories = {.beta2 = true}}).refusal(kSgd),
              HasSubstr("accepted: with optimizer adam, adamw or muon"));
}

TEST(Memories, AreRefusedWhereARuleAnswersThem) {
  const FunctionRule rule("mine", FunctionRule::Answer([](const RuleInput& input) {
                            Rates rates = Rule::scaled(input, 1);
                            rates.optimizer.momentum = 0.5;
                            return rates;
                          }));
  RateAdjuster adjuster({.memories = {.momentum = true}});
  const RuleInput input = step_of(256, kSgd);
  Rates rates = Rule::scaled(input, 1);
  rates.optimizer.momentum = 0.5;
  EXPECT_EQ(error_of([&] { return adjuster.adjust(rates, input, rule); }),
            "rule mine answers momentum itself; accepted: a memory in samples of other numbers");
}

TEST(Memories, AreParsed) {
  EXPECT_EQ(parse_memories(""), MemoriesInSamples());
  EXPECT_EQ(parse_memories("momentum=samples,lookahead=samples,beta1=steps"),
            (MemoriesInSamples{.momentum = true, .lookahead = true}));
  EXPECT_EQ(parse_memories("beta1=samples,beta2=samples"),
            (MemoriesInSamples{.beta1 = true, .beta2 = true}));
  EXPECT_THAT(error_of([] { return parse_memories("beta2=sample"); }),
              HasSubstr("accepted: steps, samples"));
  EXPECT_THAT(error_of([] { return parse_memories("alpha=samples"); }), HasSubstr("alpha"));
}

TEST(DecayRule, KeepsTheTimescale) {
  // batch / (rate x decay) is 128 / (0.01 d) at the reference batch.
  for (const auto& [rule, factor] :
       {std::pair{"constant", 4.0}, {"root", 2.0}, {"linear", 1.0}, {"root-adam", 2.0}}) {
    Adjusted adjusted(rule, {.decay = DecayRule::timescale});
    const Rates rates = adjusted.step(512, kAdam);
    EXPECT_DOUBLE_EQ(rates.weight_decay_factor, factor) << rule;
    EXPECT_DOUBLE_EQ(512 / (rates.learning_rate * rates.weight_decay_factor), 128 / 0.01);
  }
  // The schedule shortens the rate at every batch size.
  Adjusted adjusted("root", {.decay = DecayRule::timescale});
  EXPECT_DOUBLE_EQ(adjusted.step(512, kAdam, 0.001).weight_decay_factor, 2);
  EXPECT_EQ(adjusted.step(512, kAdam, 0).weight_decay_factor, 1);
  // The factor of a sum of gradients stays.
  Adjusted sum("linear-momentum", {.decay = DecayRule::timescale});
  EXPECT_DOUBLE_EQ(sum.step(512, kSgd).weight_decay_factor, 16);
  EXPECT_EQ(Adjusted("root", {}).step(512, kAdam).weight_decay_factor, 1);
}

TEST(BatchChange, RescalesTheMeanByTheRatioOfRates) {
  Adjusted pytorch("root", {.on_batch_change = {.mean = Treatment::rescale}});
  EXPECT_FALSE(pytorch.step(128, kSgd).optimizer.mean_factor) << "the first step is no change";
  EXPECT_FALSE(pytorch.step(128, kSgd).optimizer.mean_factor);
  EXPECT_DOUBLE_EQ(*pytorch.step(512, kSgd).optimizer.mean_factor, 0.5);
  EXPECT_FALSE(pytorch.step(512, kSgd, 0.02).optimizer.mean_factor) << "a schedule is no change";
  EXPECT_DOUBLE_EQ(*pytorch.step(128, kSgd, 0.03).optimizer.mean_factor, 2);

  OptimizerNumbers numbers = kSgd;
  numbers.momentum_form = MomentumForm::mxnet;
  Adjusted mxnet("linear", {.on_batch_change = {.all = Treatment::rescale}});
  static_cast<void>(mxnet.step(128, numbers));
  EXPECT_DOUBLE_EQ(*mxnet.step(512, numbers).optimizer.mean_factor, 4);

  // Old gradients move the parameters as far as they did: the new rate is 0.02 x 0.1 / 0.19.
  Adjusted both("linear",
                {.memories = {.momentum = true}, .on_batch_change = {.mean = Treatment::rescale}});
  static_cast<void>(both.step(128, kSgd));
  EXPECT_DOUBLE_EQ(*both.step(256, kSgd).optimizer.mean_factor, 0.1 / (2 * 0.19));

  // Sums of gradients need no correction.
  Adjusted sum("linear-momentum", {.on_batch_change = {.mean = Treatment::rescale}});
  static_cast<void>(sum.step(128, kSgd));
  EXPECT_EQ(*sum.step(512, kSgd).optimizer.mean_factor, 1);
}

TEST(BatchChange, RescalesTheVarianceByTheRatioOfBatches) {
  Adjusted adam("root", {.on_batch_change = {.squares = Treatment::rescale}});
  static_cast<void>(adam.step(1024, kAdam));
  const OptimizerAnswer answer = adam.step(64, kAdam).optimizer;
  EXPECT_EQ(*answer.variance_factor, 16);
  EXPECT_FALSE(answer.mean_factor || answer.forget_squares);
}

TEST(BatchChange, RescalesNoMeanSquaresOfMinibatches) {
  OptimizerNumbers numbers = kAdam;
  numbers.of_minibatches = true;
  EXPECT_EQ(Adjusted("root", {.on_batch_change = {.squares = Treatment::rescale}}).refusal(numbers),
            "a batch change rescales the mean squares (v) of minibatches, which do not depend on "
            "the batch; accepted: v=keep, v=reset, or second-moment=mean");
  // "all" is then said of m.
  Adjusted all("root", {.on_batch_change = {.all = Treatment::rescale}});
  EXPECT_EQ(all.refusal(numbers), "no error");
  static_cast<void>(all.step(1024, numbers));
  const OptimizerAnswer answer = all.step(64, numbers).optimizer;
  EXPECT_EQ(*answer.mean_factor, 4);
  EXPECT_FALSE(answer.variance_factor);
}

TEST(BatchChange, Forgets) {
  Adjusted adam("root", {.on_batch_change = {.all = Treatment::reset}});
  static_cast<void>(adam.step(1024, kAdam));
  const OptimizerAnswer answer = adam.step(64, kAdam).optimizer;
  EXPECT_EQ(*answer.mean_factor, 0);
  EXPECT_TRUE(answer.forget_squares);
  // SGD has no mean squares, of which "all" therefore says nothing.
  Adjusted sgd("root", {.on_batch_change = {.all = Treatment::reset}});
  EXPECT_EQ(sgd.refusal(kSgd), "no error");
  static_cast<void>(sgd.step(1024, kSgd));
  EXPECT_FALSE(sgd.step(64, kSgd).optimizer.forget_squares);
}

TEST(BatchChange, IsRefusedWithoutEffect) {
  EXPECT_THAT(Adjusted("root", {.on_batch_change = {.all = Treatment::reset}}).refusal({}),
              HasSubstr("the mean (m)"));
  EXPECT_THAT(Adjusted("root", {.on_batch_change = {.squares = Treatment::reset}}).refusal(kSgd),
              HasSubstr("the mean squares (v)"));
  EXPECT_EQ(Adjusted("root", {.on_batch_change = {.mean = Treatment::keep}}).refusal({}),
            "no error");
}

TEST(BatchChange, IsParsed) {
  EXPECT_EQ(parse_batch_change("rescale"), BatchChange{.all = Treatment::rescale});
  EXPECT_EQ(parse_batch_change("m=reset,v=rescale"),
            (BatchChange{.mean = Treatment::reset, .squares = Treatment::rescale}));
  EXPECT_EQ(parse_batch_change("v=reset").of_mean(), Treatment::keep);
  EXPECT_THAT(error_of([] { return parse_batch_change("forget"); }),
              HasSubstr("keep, rescale, reset"));
  EXPECT_THAT(error_of([] { return parse_batch_change("m=forget"); }),
              HasSubstr("keep, rescale, reset"));
}

TEST(RateAdjuster, RemembersTheLastBatch) {
  const RuleAdjustments adjustments{.on_batch_change = {.all = Treatment::rescale}};
  const auto rule = RuleChoice("root").make();
  RateAdjuster before(adjustments);
  const RuleInput first = step_of(1024, kAdam);
  static_cast<void>(before.adjust(rule->rates(first), first, *rule));
  RateAdjuster after(adjustments);
  load_numbers(after, numbers_of(before), "the last batch");
  const RuleInput second = step_of(256, kAdam);
  const OptimizerAnswer answer = after.adjust(rule->rates(second), second, *rule).optimizer;
  EXPECT_EQ(*answer.variance_factor, 4);
  EXPECT_DOUBLE_EQ(*answer.mean_factor, 2);
}

}  // namespace
}  // namespace rubato
