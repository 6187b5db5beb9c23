// The family of policies, and a source that asks one.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/batch_policies.hpp>
#include <rubato/steps/batch_policy.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;

constexpr BatchPolicySetting kSetting{.minibatch_size = 4, .reference_batch_size = 8};

std::string error_of_policy(const std::string& text, const BatchPolicySetting& setting = kSetting) {
  return error_of([&] { return BatchPolicyChoice(text).make(setting); });
}

TEST(BatchPolicies, AreMadeByName) {
  for (const Strategy& strategy : batch_policies()) {
    std::string text = strategy.name;
    for (const Argument& argument : strategy.arguments) {
      if (argument.example.empty()) continue;
      text += (text == strategy.name ? ":" : ",") + argument.name + "=" + argument.example;
    }
    EXPECT_EQ(error_of_policy(text), "no error");
    EXPECT_EQ(is_fixed_batch_policy(text), strategy.name == "fixed");
  }
  EXPECT_THAT(error_of_policy("noise"), HasSubstr("unknown batch policy 'noise'"));
  EXPECT_EQ(error_of_policy("goodput"), "goodput needs a 'max'; accepted: goodput:max=1024");
  EXPECT_EQ(error_of_policy("noise-scale:min=9,max=11"),
            "no multiple of the minibatch size, 4, lies between min=9 and max=11; accepted: bounds "
            "that have one between them");
  EXPECT_EQ(error_of_policy("noise-scale:min=9,max=12"), "no error");
  // Bounds the wrong way round have no batch between them, whatever the minibatch.
  for (const std::int64_t minibatch : {1, 4}) {
    EXPECT_EQ(error_of_policy("noise-scale:min=9,max=8", {.minibatch_size = minibatch}),
              "noise-scale: min: 9 is above max=8; accepted: 1 to 8");
  }
  EXPECT_EQ(error_of_policy("goodput:max=7"),
            "goodput: max: 7 is below the min that is not given, 8 (--ref-batch); accepted: 8 and "
            "more, or with a min of at most 7");
  EXPECT_EQ(error_of_policy("noise-scale:max=3"),
            "noise-scale: max: 3 is below the min that is not given, 4 (a minibatch); accepted: 4 "
            "and more");
  EXPECT_THAT(error_of_policy("goodput:max=64,threshold=-1"), HasSubstr("threshold"));
  EXPECT_THAT(error_of_policy("goodput:max=64,factor=2"), HasSubstr("factor"));
  EXPECT_EQ(error_of_policy("goodput:max=64", {.minibatch_size = 0}),
            "the setting of a policy has 0 samples in a minibatch; accepted: a whole number from 1 "
            "to 1099511627776");
}

TEST(BatchPolicies, RefuseARampThatIsNone) {
  EXPECT_EQ(error_of_policy("ramp:from=64,to=32,samples=10"),
            "ramp: from: 64 is above to=32; accepted: 1 to 32");
  EXPECT_EQ(error_of_policy("ramp:from=5,to=7,samples=10"),
            "no multiple of the minibatch size, 4, lies between from=5 and to=7; accepted: "
            "bounds that have one between them");
  EXPECT_EQ(error_of_policy("ramp:from=8,to=24,samples=10,stages=doublings"),
            "ramp: stages: 24 is not 8 doubled several times; accepted: a number of jumps, or "
            "another to");
  EXPECT_THAT(error_of_policy("ramp:from=8,to=8,samples=10,stages=doublings"),
              HasSubstr("8 is not 8 doubled several times"));
  for (const char* const stages : {"0", "half", "1001"}) {
    EXPECT_EQ(error_of_policy(std::string("ramp:from=8,to=32,samples=10,stages=") + stages),
              std::string("ramp: stages: '") + stages +
                  "'; accepted: a number of jumps from 1 to 1000, or doublings");
  }
  EXPECT_EQ(error_of_policy("ramp:from=8,to=32"),
            "ramp needs a 'samples'; accepted: ramp:samples=100000");
}

TEST(BatchPolicies, HaveNamesThatTellThemApart) {
  const auto name = [](const std::string& text, const BatchPolicySetting& setting = kSetting) {
    return BatchPolicyChoice(text).make(setting)->name();
  };
  EXPECT_EQ(name("noise-scale:max=64"), name("noise-scale:max=64,min=4,factor=1"));
  EXPECT_NE(name("noise-scale:max=64"), name("noise-scale:max=64,factor=2"));
  EXPECT_NE(name("goodput:max=64"), name("goodput:max=64,threshold=0.1"));
  EXPECT_NE(name("goodput:max=64"),
            name("goodput:max=64", {.minibatch_size = 4, .reference_batch_size = 12}));
  const std::string ramp = "ramp:from=8,to=32,samples=100";
  EXPECT_EQ(name(ramp + ",stages=2"), name(ramp + ",stages=doublings"));
  EXPECT_NE(name(ramp + ",stages=2"), name(ramp));
  EXPECT_NE(name(ramp), name("ramp:from=8,to=32,samples=101"));
}

std::unique_ptr<StepSource> by_policy(Trace trace, const std::string& text) {
  return std::make_unique<PolicySource>(std::make_unique<TraceSource>(std::move(trace)),
                                        BatchPolicyChoice(text).make(kSetting));
}

// The batches of an epoch of 480 samples, as they are simulated.
std::vector<std::int64_t> batches_of(const std::string& ramp) {
  const auto source = by_policy(Trace::constant(12), ramp);
  std::vector<std::int64_t> batches;
  static_cast<void>(
      simulate(*source,
               {.dataset_size = 480,
                .minibatch_size = 4,
                .cores = 3,
                .remainder = Remainder::carry,
                .epochs = 1},
               [&](const SimulatedStep& step) { batches.push_back(step.plan.batch_size); }));
  return batches;
}

// 8 + s / 10 after s samples, rounded to fours: 8 after 0, 8.8 after 8, 9.6 after 16, 10.4 after
// 24, which is nearer to 12, and so on.
TEST(Ramp, GrowsLinearlyInSamples) {
  EXPECT_THAT(batches_of("ramp:from=8,to=32,samples=240"),
              ElementsAre(8, 8, 8, 12, 12, 12, 16, 16, 16, 20, 20, 24, 24, 28, 32, 32, 32, 32, 32,
                          32, 32, 32));
}

// Jumps after 100, 200 and 300 samples by 2, as soon as a step begins there: five steps of 8 make
// 40, and so on.
TEST(Ramp, JumpsByEqualFactors) {
  const std::vector<std::int64_t> by_number = batches_of("ramp:from=8,to=64,samples=300,stages=3");
  // 13 steps of 8 reach 104, 6 of 16 reach 200, and 4 of 32 reach 328.
  std::vector<std::int64_t> expected(13, 8);
  expected.insert(expected.end(), 6, 16);
  expected.insert(expected.end(), 4, 32);
  expected.insert(expected.end(), {64, 64, 24});
  EXPECT_THAT(by_number, testing::ElementsAreArray(expected));
  EXPECT_EQ(batches_of("ramp:from=8,to=64,samples=300,stages=doublings"), by_number);
  // By sqrt 2: 11.3, which is nearer to 12, and 16.
  EXPECT_THAT(batches_of("ramp:from=8,to=16,samples=32,stages=2"), Contains(12).Times(2));
}

TEST(Ramp, SaysItsTargetAndUsesTheCoresThatHaveAMinibatch) {
  const auto policy = BatchPolicyChoice("ramp:from=8,to=32,samples=240").make(kSetting);
  EXPECT_EQ(policy->max_batch(1000), 32);
  EXPECT_FALSE(policy->needs_noise_scale());
  const BatchDecision decision =
      policy->decide({.batch_size = 4, .cores = 5}, {.step = {}, .epoch = {}, .samples = 30});
  EXPECT_EQ(decision.step, (TraceStep{.batch_size = 12, .cores = 3}));
  EXPECT_THAT(decision.inputs, ElementsAre(NamedNumber{.name = "target", .value = 11}));
  const BatchDecision after =
      policy->decide({.batch_size = 4}, {.step = {}, .epoch = {}, .samples = 1000});
  EXPECT_EQ(after.step, (TraceStep{.batch_size = 32}));
  EXPECT_THAT(after.inputs, ElementsAre(NamedNumber{.name = "target", .value = 32}));
}

TrainOptions policy_options() {
  return {.epochs = 3,
          .minibatch_size = 4,
          .learning_rate = 0.02,
          .reference_batch_size = 8,
          .rule = "adascale",
          .cores = 3,
          .threads = 2};
}

TEST(PolicySource, TakesATraceAsItIsByTheFixedPolicy) {
  const Trace trace({{8, 2}, {16, 5}, {4, 1}}, TraceEnd::cycle, "some");
  Trainer by_trace(tiny_objective(), trace, policy_options());
  const auto expected = test::recorded(by_trace);
  Trainer trainer(tiny_objective(), by_policy(trace, "fixed"), policy_options());
  const auto recorder = test::recorded(trainer);
  EXPECT_EQ(test::difference_of(by_trace, trainer), std::nullopt);
  ASSERT_EQ(recorder->steps.size(), expected->steps.size());
  for (std::size_t i = 0; i < recorder->steps.size(); ++i) {
    EXPECT_EQ(recorder->steps[i].plan.cores, expected->steps[i].plan.cores);
    EXPECT_THAT(recorder->steps[i].decision_inputs, IsEmpty());
  }
}

TEST(PolicySource, TakesOfEachHostItsShareOfTheCores) {
  const auto decided = [](std::optional<std::int64_t> cores) {
    const PolicySource source(
        std::make_unique<TraceSource>(Trace(
            {{.batch_size = 8, .cores = 9, .host_cores = {6, 0, 3}}}, TraceEnd::hold, "some")),
        std::make_unique<FunctionPolicy>(
            [cores](TraceStep step, const SourceProgress& /*so_far*/) {
              step.cores = cores;
              return BatchDecision{.step = step};
            },
            FunctionPolicyOptions{.name = "fewer", .max_batch = 8}));
    return *source.next({});
  };
  EXPECT_THAT(decided(std::nullopt).host_cores, ElementsAre(6, 0, 3));
  EXPECT_THAT(decided(6).host_cores, ElementsAre(4, 0, 2));
  EXPECT_EQ(decided(6).cores, 6);
  EXPECT_THAT(decided(1).host_cores, ElementsAre(0, 0, 1));
}

TEST(PolicySource, IsBoundToItsPolicyAndToTheTrace) {
  const auto source = [](const std::string& text, std::int64_t second = 16) {
    return by_policy(trace_of({8, second}), text);
  };
  const State state = state_of(*source("noise-scale:max=24"), 2);
  const auto loaded = [&](StepSource& into) {
    return error_of([&] { load_state(into, state, 2); });
  };
  EXPECT_EQ(loaded(*source("noise-scale:max=24")), "no error");
  EXPECT_THAT(loaded(*source("noise-scale:max=28")),
              HasSubstr("another policy, noise-scale of 1 to 6 minibatches of 4 by"));
  EXPECT_THAT(loaded(*source("noise-scale:max=24", 12)), HasSubstr("is not that of the run"));
  const State of_trace = state_of(TraceSource(trace_of({8, 16})), 2);
  EXPECT_THAT(error_of([&] { load_state(*source("noise-scale:max=24"), of_trace, 2); }),
              HasSubstr("another policy, none; accepted"));
}

// Has a clock.
class Ticking final : public StepSource {
 public:
  std::optional<TraceStep> next(const SourceProgress&) const override {
    return TraceStep{.batch_size = 4};
  }
  bool has_clock() const override { return true; }
  std::int64_t max_batch() const override { return 4; }
};

TEST(PolicySource, RefusesWhatCannotWork) {
  EXPECT_THAT(error_of([] { by_policy(trace_of({8}), "goodput:max=64"); }),
              HasSubstr("real seconds would make the result depend on the machine; accepted: a "
                        "source with a clock of modelled time"));
  EXPECT_EQ(error_of([] { PolicySource(nullptr, BatchPolicyChoice("fixed").make(kSetting)); }),
            "a source of steps by a policy needs both; accepted: any but null");
  EXPECT_THAT(error_of([] {
                PolicySource(std::make_unique<Ticking>(),
                             BatchPolicyChoice("fixed").make(kSetting));
              }),
              HasSubstr("the source of the steps has a clock"));
}

TEST(PolicySource, TakesNothingThatIsNotOffered) {
  const auto error = [](const TraceStep& decided, const TraceStep& offered) {
    const PolicySource source(
        std::make_unique<TraceSource>(Trace({offered}, TraceEnd::hold, "some")),
        std::make_unique<FunctionPolicy>(
            [=](const TraceStep&, const SourceProgress&) { return BatchDecision{.step = decided}; },
            FunctionPolicyOptions{.name = "mine"}));
    return error_of([&] { return source.next({}); });
  };
  EXPECT_EQ(error({.batch_size = 8, .cores = 5}, {.batch_size = 8, .cores = 4}),
            "some, step 1: the policy mine decides on 8 samples on 5 cores; accepted: a minibatch "
            "at least, on 1 to 4 cores");
  EXPECT_EQ(error({.batch_size = 0}, {.batch_size = 8}),
            "some, step 1: the policy mine decides on 0 samples; accepted: a minibatch at least, "
            "on a core at least");
  EXPECT_THAT(error({.batch_size = 8, .cores = 0}, {.batch_size = 8}), HasSubstr("on 0 cores"));
  EXPECT_EQ(error({.batch_size = 8, .cores = 5}, {.batch_size = 8}), "no error");
  EXPECT_THAT(error_of([] { FunctionPolicy({}); }), HasSubstr("a policy without a function"));
}

}  // namespace
}  // namespace rubato
