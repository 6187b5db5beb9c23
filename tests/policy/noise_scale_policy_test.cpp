// A policy that follows the gradient noise scale: how far, how fast, and from when on.

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/steps/batch_policies.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

std::unique_ptr<BatchPolicy> noise_policy(const std::string& arguments) {
  return BatchPolicyChoice("noise-scale:" + arguments).make({.minibatch_size = 4});
}

// The batches of the steps after which there were these noise scales.
std::vector<std::int64_t> follow(BatchPolicy& policy,
                                 const std::vector<std::optional<double>>& noises,
                                 const TraceStep& offered = {.batch_size = 20}) {
  std::vector<std::int64_t> batches;
  SourceProgress progress;
  for (const std::optional<double>& noise : noises) {
    const TraceStep step = policy.decide(offered, progress).step;
    batches.push_back(step.batch_size);
    ++progress.step;
    progress.noise_scale = noise;
    policy.observe({.step = step, .after = progress});
  }
  return batches;
}

TEST(NoiseScalePolicy, FollowsTheNoiseWithinBounds) {
  const auto policy = noise_policy("min=8,max=64,smoothing=0,change=0,wait=1");
  EXPECT_THAT(follow(*policy, {30.0, 1.0, 1e6, 9.9, 10.1, 45.0, 1e300, -3.0, 0.0}),
              ElementsAre(20, 32, 8, 64, 8, 12, 44, 64, 8));
  EXPECT_EQ(policy->max_batch(1 << 20), 64);
  EXPECT_TRUE(policy->needs_noise_scale());
  EXPECT_FALSE(policy->needs_seconds());
}

TEST(NoiseScalePolicy, MultipliesByItsFactor) {
  const auto policy = noise_policy("max=64,factor=0.5,smoothing=0,change=0,wait=1");
  EXPECT_THAT(follow(*policy, {32.0, 64.0, 64.0}), ElementsAre(20, 16, 32));
}

TEST(NoiseScalePolicy, TakesWhatIsOfferedWhileItWaits) {
  const auto policy = noise_policy("max=64,wait=3,smoothing=0");
  EXPECT_THAT(follow(*policy, {40.0, {}, 40.0, 40.0, 40.0}), ElementsAre(20, 20, 20, 20, 40));
  const auto bounded = noise_policy("min=24,max=64,wait=3");
  EXPECT_THAT(follow(*bounded, {40.0, 40.0}), Each(24)) << "within its bounds";
  const auto without_noise = noise_policy("max=64,wait=0");
  EXPECT_THAT(follow(*without_noise, {{}, {}, {}}), Each(20));
}

TEST(NoiseScalePolicy, StaysWhereTheNoiseIsNear) {
  const auto policy = noise_policy("max=256,smoothing=0,change=0.5,wait=1");
  // 100: from 66.7 to 150.
  EXPECT_THAT(follow(*policy, {100.0, 149.0, 67.0, 65.0, 150.0, 99.0, 100.0}),
              ElementsAre(20, 100, 100, 100, 64, 148, 148));
}

TEST(NoiseScalePolicy, StaysForSomeSteps) {
  const auto policy = noise_policy("max=256,smoothing=0,change=0,every=3,wait=1");
  EXPECT_THAT(follow(*policy, {40.0, 80.0, 120.0, 160.0, 200.0, 240.0, 240.0}),
              ElementsAre(20, 20, 20, 120, 120, 120, 240));
}

TEST(NoiseScalePolicy, AveragesLogarithms) {
  const auto policy = noise_policy("max=4096,smoothing=0.5,change=0,wait=1");
  // Weights of 1/3 and 2/3 behind the second, 1/7, 2/7 and 4/7 behind the third.
  const double third = std::pow(16.0, 1.0 / 3) * std::pow(1024.0, 2.0 / 3);
  EXPECT_THAT(follow(*policy, {16.0, 1024.0, 16.0, {}}),
              ElementsAre(20, 16, 4 * std::llround(third / 4), 4 * std::llround(52.5 / 4)));
}

// Rounding may make one that is not above 0, which has no logarithm.
TEST(NoiseScalePolicy, TakesNoNoiseForASample) {
  const auto policy = noise_policy("max=64,smoothing=0.5,change=0,wait=1");
  EXPECT_THAT(follow(*policy, {32.0, -3.0, 64.0, {}}), ElementsAre(20, 32, 4, 16));
}

TEST(NoiseScalePolicy, TakesNoMoreCoresThanItHasMinibatches) {
  const auto policy = noise_policy("max=64,smoothing=0,change=0,wait=1");
  const TraceStep offered{.batch_size = 32, .cores = 6};
  EXPECT_EQ(policy->decide(offered, {}).step, (TraceStep{.batch_size = 32, .cores = 6}));
  EXPECT_EQ(policy->decide({.batch_size = 8, .cores = 6}, {}).step,
            (TraceStep{.batch_size = 8, .cores = 2}));
  EXPECT_EQ(policy->decide({.batch_size = 8}, {}).step, (TraceStep{.batch_size = 8}));
}

TEST(NoiseScalePolicy, SaysWhatItWentBy) {
  const auto policy = noise_policy("max=64,smoothing=0,change=0,wait=1");
  EXPECT_THAT(policy->decide({.batch_size = 32}, {}).inputs, IsEmpty());
  follow(*policy, {100.0});
  SourceProgress progress;
  progress.noise_scale = 100.0;
  EXPECT_THAT(policy->decide({.batch_size = 32}, progress).inputs,
              ElementsAre(NamedNumber{"noise_scale", 100}, NamedNumber{"target", 64}))
      << "the target is within the bounds";
  const auto within = noise_policy("max=4096,factor=3,smoothing=0,change=0,wait=1");
  follow(*within, {100.0});
  EXPECT_THAT(within->decide({.batch_size = 32}, progress).inputs.back().value,
              DoubleNear(300, 1e-9));
  const auto above = noise_policy("min=512,max=4096,smoothing=0,change=0,wait=1");
  follow(*above, {100.0});
  EXPECT_EQ(above->decide({.batch_size = 512}, progress).inputs.back().value, 512);
}

TEST(NoiseScalePolicy, GoesOnFromAState) {
  const std::string arguments = "max=4096,smoothing=0.7,change=0.3,every=2,wait=2";
  std::vector<std::optional<double>> noises;
  noises.reserve(40);
  for (int i = 0; i < 40; ++i) noises.emplace_back(300 + 290 * std::sin(i * i));
  const auto whole = noise_policy(arguments);
  const std::vector<std::int64_t> all = follow(*whole, noises);
  for (const int taken : {0, 1, 2, 3, 17}) {
    const auto first = noise_policy(arguments);
    follow(*first, {noises.begin(), noises.begin() + taken});
    const State state = state_of(*first);
    const auto second = noise_policy(arguments);
    load_state(*second, parse_state(state_bytes(state), "the state"));
    EXPECT_EQ(follow(*second, {noises.begin() + taken, noises.end()}),
              (std::vector(all.begin() + taken, all.end())));
  }
  const State damaged = state_of(*noise_policy("max=4096"));
  const auto other = noise_policy("min=1024,max=4096");
  EXPECT_EQ(error_of([&] { load_state(*other, damaged); }), "no error") << "no step yet";
  State of_a_step;
  follow(*whole, {4.0});
  of_a_step = state_of(*whole);
  EXPECT_EQ(error_of([&] { load_state(*other, of_a_step); }),
            "the state is damaged: the policy of the noise scale");
}

// The end of training shortens a step below its bounds: a state of it can be gone on from.
TEST(NoiseScalePolicy, TakesTheLastStepForOneWithinItsBounds) {
  const auto policy = noise_policy("min=16,max=64");
  policy->observe({.step = {.batch_size = 6}, .after = {}});
  const State state = state_of(*policy);
  EXPECT_EQ(error_of([&] { load_state(*noise_policy("min=16,max=64"), state); }), "no error");
}

}  // namespace
}  // namespace rubato
