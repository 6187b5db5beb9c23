// A policy that takes the batch of the greatest goodput, by times and noise that it is told.

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/steps/batch_policies.hpp>

#include "steps/policy/throughput.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr BatchPolicySetting kGoodputSetting{
    .minibatch_size = 4, .reference_batch_size = 32, .cores_per_host = 4};

std::unique_ptr<BatchPolicy> goodput_policy(const std::string& arguments) {
  return BatchPolicyChoice("goodput:" + arguments).make(kGoodputSetting);
}

// How long steps really take.
constexpr ThroughputModel kMachine{.gradient_base = 0.2,
                                   .gradient_slope = 0.1,
                                   .host_base = 0.4,
                                   .host_slope = 0.01,
                                   .network_base = 1,
                                   .network_slope = 0.05};

double seconds_of(const TraceStep& step, const ThroughputModel& machine = kMachine) {
  return machine.seconds(StepShape::of(step.batch_size / 4, *step.cores),
                         kGoodputSetting.cores_per_host);
}

double goodput_of(const TraceStep& step, double noise, const ThroughputModel& machine = kMachine) {
  const auto batch = static_cast<double>(step.batch_size);
  return batch / seconds_of(step, machine) * (noise + 32) / (noise + batch);
}

// Steps with that noise, from the third on; what was taken.
std::vector<TraceStep> train_by(BatchPolicy& policy, const std::vector<std::int64_t>& cores,
                                double noise, const ThroughputModel& machine = kMachine,
                                std::int64_t first = 0) {
  std::vector<TraceStep> steps;
  for (const std::int64_t offered : cores) {
    SourceProgress progress{.step = StepIndex{first + static_cast<std::int64_t>(steps.size())},
                            .epoch = {}};
    if (progress.step.value() >= 3) progress.noise_scale = noise;
    const TraceStep step = policy.decide({.batch_size = 4, .cores = offered}, progress).step;
    steps.push_back(step);
    policy.observe({.step = step, .after = progress, .seconds = seconds_of(step, machine)});
  }
  return steps;
}

// What the best of all steps on up to so many cores is worth.
double best_goodput(std::int64_t most_cores, std::int64_t least, std::int64_t most, double noise,
                    const ThroughputModel& machine = kMachine) {
  double best = 0;
  for (std::int64_t cores = 1; cores <= most_cores; ++cores) {
    for (std::int64_t batch = least; batch <= most; batch += 4) {
      best = std::max(best, goodput_of({.batch_size = batch, .cores = cores}, noise, machine));
    }
  }
  return best;
}

TEST(GoodputPolicy, BeginsWithTheReferenceBatchAndOfTwiceTheLoad) {
  const auto policy = goodput_policy("max=4096");
  const std::vector<TraceStep> steps = train_by(*policy, {4, 4, 4}, 100);
  EXPECT_THAT(steps, ElementsAre(TraceStep{.batch_size = 32, .cores = 4},
                                 TraceStep{.batch_size = 64, .cores = 4},
                                 TraceStep{.batch_size = 32, .cores = 4}))
      << "there is no noise scale before the fourth step";
}

TEST(GoodputPolicy, ExploresLessWhereMoreIsTooMuch) {
  EXPECT_THAT(train_by(*goodput_policy("min=4,max=32"), {4, 4}, 100),
              ElementsAre(TraceStep{.batch_size = 32, .cores = 4},
                          TraceStep{.batch_size = 16, .cores = 4}));
  EXPECT_THAT(train_by(*goodput_policy("min=4,max=40"), {4, 4}, 100),
              ElementsAre(TraceStep{.batch_size = 32, .cores = 4},
                          TraceStep{.batch_size = 40, .cores = 4}));
  // One minibatch on each core is the only step that there is.
  EXPECT_THAT(train_by(*goodput_policy("max=32"), {8, 8, 8, 8}, 100),
              Each(TraceStep{.batch_size = 32, .cores = 8}));
  EXPECT_THAT(train_by(*goodput_policy("max=32"), {64, 64, 64, 64}, 100),
              Each(TraceStep{.batch_size = 32, .cores = 8}));
  // Devices that come and go show it without being asked to.
  EXPECT_THAT(
      train_by(*goodput_policy("max=64"), {4, 8, 4}, 100),
      ElementsAre(TraceStep{.batch_size = 32, .cores = 4}, TraceStep{.batch_size = 32, .cores = 8},
                  TraceStep{.batch_size = 32, .cores = 4}));
}

// Against all steps that there are, by the real times.
TEST(GoodputPolicy, ComesToTheBestStep) {
  for (const double noise : {0.0, 20.0, 300.0, 1e4, 1e6}) {
    for (const std::int64_t cores : {1, 3, 4, 7, 16}) {
      const auto policy = goodput_policy("min=4,max=1000,threshold=0");
      // On all numbers of cores once, so that the model is that of the machine.
      std::vector<std::int64_t> offered{1, 1, 1, 2, 3, 4, 5, 8, 16, 4, 8, 16};
      train_by(*policy, offered, noise);
      const std::vector<TraceStep> last =
          train_by(*policy, std::vector<std::int64_t>(4, cores), noise, kMachine, 20);
      EXPECT_GE(goodput_of(last.back(), noise), 0.98 * best_goodput(cores, 4, 1000, noise))
          << noise << " on " << cores << ": " << last.back().batch_size << " on "
          << *last.back().cores;
    }
  }
}

TEST(GoodputPolicy, TakesMoreWhereTheNoiseIsLarge) {
  std::int64_t before = 0;
  for (const double noise : {1.0, 100.0, 1e4}) {
    const auto policy = goodput_policy("min=4,max=4096");
    const std::int64_t batch = train_by(*policy, {4, 4, 4, 4, 4, 4}, noise).back().batch_size;
    EXPECT_GT(batch, before);
    before = batch;
  }
}

// A network so slow that a host alone is faster than all of them.
TEST(GoodputPolicy, LeavesCoresThatSlowItDown) {
  ThroughputModel machine = kMachine;
  machine.network_base = 100;
  const auto policy = goodput_policy("max=64");
  const std::vector<TraceStep> steps = train_by(*policy, {4, 4, 8, 8, 8, 8}, 100, machine);
  EXPECT_EQ(steps[2].cores, 8) << "which nobody knows before they are used";
  EXPECT_EQ(steps.back().cores, 4);
}

TEST(GoodputPolicy, StaysWhereAnotherBatchIsHardlyBetter) {
  const auto batch_of = [](const std::string& threshold, double noise) {
    const auto policy = goodput_policy("min=4,max=4096,threshold=" + threshold);
    train_by(*policy, {4, 4, 4, 4, 4}, 100);
    return train_by(*policy, {4}, noise, kMachine, 5).back().batch_size;
  };
  const std::int64_t at_first = batch_of("0", 100);
  EXPECT_NE(batch_of("0", 150), at_first);
  EXPECT_EQ(batch_of("0.05", 150), batch_of("0.05", 100));
  EXPECT_NE(batch_of("0.05", 5000), batch_of("0.05", 100));
}

TEST(GoodputPolicy, SaysWhatItWentBy) {
  const auto policy = goodput_policy("min=4,max=4096");
  EXPECT_THAT(policy->decide({.batch_size = 4, .cores = 4}, {}).inputs, IsEmpty());
  train_by(*policy, {1, 1, 2, 4, 8}, 100);
  SourceProgress progress;
  progress.noise_scale = 100;
  const BatchDecision decision = policy->decide({.batch_size = 4, .cores = 4}, progress);
  std::vector<std::string> names;
  for (const NamedNumber& input : decision.inputs) names.push_back(input.name);
  EXPECT_THAT(names, ElementsAre("noise_scale", "gradient_base", "gradient_slope", "host_base",
                                 "host_slope", "network_base", "network_slope", "gamma",
                                 "fit_error", "step_seconds", "efficiency", "goodput"));
  // The decision can be computed from what is said.
  const double batch = static_cast<double>(decision.step.batch_size);
  EXPECT_DOUBLE_EQ(decision.inputs[10].value, (100 + 32) / (100 + batch));
  EXPECT_DOUBLE_EQ(decision.inputs[11].value,
                   batch / decision.inputs[9].value * decision.inputs[10].value);
  EXPECT_NEAR(decision.inputs[9].value / seconds_of(decision.step), 1, 0.02);
}

// Of times that no line goes through, and after a resume.
TEST(GoodputPolicy, SaysHowFarItsModelIsFromTheTimes) {
  const std::vector<std::pair<std::int64_t, double>> times{{1, 1.0}, {2, 2.2}, {4, 3.5}};
  const auto policy = goodput_policy("min=4,max=4096");
  for (const auto& [minibatches, seconds] : times) {
    policy->observe(
        {.step = {.batch_size = 4 * minibatches, .cores = 1}, .after = {}, .seconds = seconds});
  }
  const auto inputs_of = [](const BatchPolicy& of) {
    return of.decide({.batch_size = 4, .cores = 1}, {}).inputs;
  };
  const std::vector<NamedNumber> inputs = inputs_of(*policy);
  const auto input = [&](std::string_view name) {
    for (const NamedNumber& one : inputs) {
      if (one.name == name) return one.value;
    }
    return -1.0;
  };
  double squares = 0;
  for (const auto& [minibatches, seconds] : times) {
    const double model =
        input("gradient_base") + input("gradient_slope") * static_cast<double>(minibatches);
    squares += std::log(model / seconds) * std::log(model / seconds);
  }
  EXPECT_NEAR(input("fit_error"), std::sqrt(squares / 3), 1e-12);
  EXPECT_GT(input("fit_error"), 0.01);
  const State state = state_of(*policy);
  const auto loaded = goodput_policy("min=4,max=4096");
  load_state(*loaded, state);
  EXPECT_EQ(inputs_of(*loaded), inputs);
}

TEST(GoodputPolicy, GoesOnFromAState) {
  const std::vector<std::int64_t> cores{4, 4, 2, 8, 8, 3, 3, 16, 1, 4, 4, 7, 16, 16, 2};
  const auto whole = goodput_policy("max=1024");
  const std::vector<TraceStep> all = train_by(*whole, cores, 250);
  const State end = state_of(*whole);
  for (std::size_t taken = 0; taken < cores.size(); ++taken) {
    const auto middle = cores.begin() + static_cast<std::ptrdiff_t>(taken);
    const auto first = goodput_policy("max=1024");
    train_by(*first, {cores.begin(), middle}, 250);
    const State state = state_of(*first);
    const auto second = goodput_policy("max=1024");
    load_state(*second, parse_state(state_bytes(state), "the state"));
    EXPECT_EQ(
        train_by(*second, {middle, cores.end()}, 250, kMachine, static_cast<std::int64_t>(taken)),
        (std::vector(all.begin() + static_cast<std::ptrdiff_t>(taken), all.end())));
    const State same_end = state_of(*second);
    EXPECT_EQ(same_end, end) << taken;
  }
}

// The end of training shortens a step, below its bounds and within a minibatch.
TEST(GoodputPolicy, TakesTheLastStepForWhatItIs) {
  const auto policy = goodput_policy("min=16,max=1024");
  policy->observe({.step = {.batch_size = 6, .cores = 1}, .after = {}, .seconds = 1.0});
  const State state = state_of(*policy);
  EXPECT_THAT(state.values<std::int64_t>("shapes"), ElementsAre(1, 2, 1)) << "two minibatches";
  EXPECT_EQ(error_of([&] { load_state(*goodput_policy("min=16,max=1024"), state); }), "no error");
}

TEST(GoodputPolicy, RefusesADamagedState) {
  const auto policy = goodput_policy("max=1024");
  train_by(*policy, {4, 4, 4}, 250);
  const State good = state_of(*policy);
  const auto error = [&](std::string_view changed, const std::vector<double>& numbers,
                         const std::vector<std::int64_t>& wholes) {
    State state;
    for (const char* name : {"seconds", "model"}) {
      state.put(name, name == changed ? numbers : good.values<double>(name));
    }
    state.put("shapes", changed == "shapes" ? wholes : good.values<std::int64_t>("shapes"));
    state.put("last_batch", changed == "last_batch" ? wholes.front() : good.count("last_batch"));
    return error_of([&] { load_state(*goodput_policy("max=1024"), state); });
  };
  EXPECT_EQ(error("", {}, {}), "no error");
  EXPECT_THAT(error("seconds", {1, -1}, {}), HasSubstr("damaged: the policy of goodput"));
  EXPECT_THAT(error("seconds", {1}, {}), HasSubstr("damaged"));
  EXPECT_THAT(error("shapes", {}, {4, 2, 1, 4, 2, 1}), HasSubstr("damaged"));
  EXPECT_THAT(error("shapes", {}, {4, 2, 1, 0, 2, 1}), HasSubstr("damaged"));
  EXPECT_THAT(error("last_batch", {}, {257}), HasSubstr("damaged"));
  EXPECT_THAT(error("last_batch", {}, {7}), HasSubstr("damaged"));
  EXPECT_THAT(error("model", {0, 1, 0, 0, 0, 0, 0, 1}, {}), HasSubstr("the time of steps"));
}

TEST(GoodputPolicy, RefusesWhatHasNoClockOrNoCores) {
  const auto policy = goodput_policy("max=1024");
  EXPECT_TRUE(policy->needs_seconds());
  EXPECT_TRUE(policy->needs_noise_scale());
  EXPECT_EQ(policy->max_batch(1 << 20), 1024);
  EXPECT_THAT(error_of([&] { return policy->decide({.batch_size = 4}, {}); }),
              HasSubstr("depends on cores, and none are offered"));
  for (const std::optional<double> seconds : {std::optional<double>(), std::optional(0.0)}) {
    EXPECT_THAT(error_of([&] {
                  policy->observe(
                      {.step = {.batch_size = 32, .cores = 4}, .after = {}, .seconds = seconds});
                }),
                HasSubstr("accepted: a source with a clock of modelled time"));
  }
}

}  // namespace
}  // namespace rubato
