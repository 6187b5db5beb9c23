#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/steps/availability.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// Batch sizes and how often each comes in a row.
using RunLengths = std::vector<std::pair<std::int64_t, std::int64_t>>;

RunLengths run_lengths(const Trace& trace) {
  RunLengths runs;
  for (const TraceStep& step : trace.steps()) {
    if (runs.empty() || runs.back().first != step.batch_size) runs.emplace_back(step.batch_size, 0);
    ++runs.back().second;
  }
  return runs;
}

std::vector<std::int64_t> cores_in(const Trace& trace) {
  std::vector<std::int64_t> cores;
  for (const TraceStep& step : trace.steps()) cores.push_back(step.cores.value_or(-1));
  return cores;
}

// A minute each: 10, 3, none, and 7 devices.
Availability four_minutes() {
  return {{{0, 10}, {60, 3}, {120, 0}, {180, 7}}, 240, "made", TraceEnd::hold, 60};
}

Trace steps_of(const std::string& policy, std::int64_t minibatch = 32) {
  return to_steps(four_minutes(), *AvailabilityChoice(policy).make(minibatch));
}

std::string error_stepping(const std::string& policy, std::int64_t minibatch = 32) {
  return error_of([&] { return steps_of(policy, minibatch); });
}

TEST(AvailabilitySteps, FollowTheDevices) {
  const Trace trace = steps_of("");
  EXPECT_EQ(trace.steps(), (std::vector<TraceStep>{{320, 10}, {96, 3}, {224, 7}}));
  EXPECT_EQ(trace.source(), "made");
  EXPECT_EQ(trace.end(), TraceEnd::hold);
  EXPECT_EQ(steps_of("weak").steps(), trace.steps());
  EXPECT_EQ(run_lengths(steps_of("weak:samples-per-device=64")),
            (RunLengths{{640, 1}, {192, 1}, {448, 1}}));
}

TEST(AvailabilitySteps, RoundDownToWorkers) {
  EXPECT_EQ(run_lengths(steps_of("weak:quantum=4")), (RunLengths{{256, 1}, {128, 1}}));
  EXPECT_THAT(cores_in(steps_of("weak:quantum=3")), ElementsAre(9, 3, 6));
}

TEST(AvailabilitySteps, TakeAsLongAsTheySay) {
  EXPECT_EQ(run_lengths(steps_of("weak:seconds-per-step=20")),
            (RunLengths{{320, 3}, {96, 3}, {224, 3}}));
  EXPECT_EQ(run_lengths(steps_of("weak:steps-per-sample=7")),
            (RunLengths{{320, 7}, {96, 7}, {224, 7}}));
  // Steps begin at 0, 50, 100, 150 (none there) and 200 s.
  EXPECT_THAT(cores_in(steps_of("weak:seconds-per-step=50")), ElementsAre(10, 10, 3, 7));
  // At 0 and 100: what there is when none begins has no part.
  EXPECT_THAT(cores_in(steps_of("weak:seconds-per-step=100")), ElementsAre(10, 3, 7));
}

TEST(AvailabilitySteps, KeepTheBatchWithStrongScaling) {
  const Trace trace = steps_of("strong:batch=512,quantum=2");
  EXPECT_EQ(trace.steps(), (std::vector<TraceStep>{{512, 10}, {512, 2}, {512, 6}}));
}

TEST(AvailabilitySteps, AreScaledToFit) {
  EXPECT_THAT(cores_in(steps_of("weak:max-cores=5")), ElementsAre(5, 2, 4));
  EXPECT_THAT(cores_in(steps_of("weak:max-cores=10")), ElementsAre(10, 3, 7));
  EXPECT_THAT(cores_in(steps_of("weak:max-cores=1")), ElementsAre(1, 1, 1));
  EXPECT_THAT(cores_in(steps_of("strong:batch=512,quantum=2,max-cores=5")), ElementsAre(4, 2, 2));
  EXPECT_EQ(run_lengths(steps_of("weak:max-batch=170")), (RunLengths{{160, 1}, {64, 1}, {128, 1}}));
  EXPECT_THAT(cores_in(steps_of("weak:max-batch=170")), ElementsAre(10, 3, 7));
  EXPECT_EQ(run_lengths(steps_of("weak:max-cores=5,max-batch=64,samples-per-device=48", 64)),
            (RunLengths{{64, 3}}));
}

// What is nearest, and a half rounds up: 3 workers of 10 on 5 are 1.5, 7 of 10 on 5 are 3.5.
TEST(AvailabilitySteps, AreRoundedToTheNearest) {
  const Availability availability({{0, 10}, {60, 3}, {120, 7}, {180, 1}}, 240, "made");
  const auto steps = [&](const std::string& policy) {
    return to_steps(availability, *AvailabilityChoice(policy).make(32));
  };
  EXPECT_THAT(cores_in(steps("weak:max-cores=5")), ElementsAre(5, 2, 4, 1));
  EXPECT_THAT(cores_in(steps("weak:max-cores=4")), ElementsAre(4, 1, 3, 1));
  EXPECT_EQ(run_lengths(steps("weak:max-batch=160")),
            (RunLengths{{160, 1}, {64, 1}, {128, 1}, {32, 1}}));
  EXPECT_EQ(run_lengths(steps("weak:max-batch=159")),
            (RunLengths{{128, 1}, {32, 1}, {96, 1}, {32, 1}}))
      << "4 minibatches at most: 1.2, 2.8 and 0.4 of them";
}

TEST(AvailabilitySteps, SayHowTheyWereScaled) {
  EXPECT_EQ(steps_of("weak").scaling(), "");
  EXPECT_EQ(steps_of("weak:max-cores=10,max-batch=320").scaling(), "");
  EXPECT_EQ(steps_of("weak:max-cores=5").scaling(), "cores scaled by 5/10 to fit max-cores=5");
  EXPECT_EQ(steps_of("strong:batch=512,quantum=2,max-cores=5").scaling(),
            "cores scaled by 4/10 to fit max-cores=5");
  EXPECT_EQ(steps_of("weak:max-batch=170").scaling(),
            "batches scaled by 160/320 to fit max-batch=170");
  EXPECT_EQ(
      steps_of("weak:max-cores=5,max-batch=64").scaling(),
      "cores scaled by 5/10 to fit max-cores=5, batches scaled by 64/160 to fit max-batch=64");
}

// The last number of a file holds for no time in it: no step has it, whatever follows, so that the
// steps are those of the same file without it.
TEST(AvailabilitySteps, AreScaledByWhatLasts) {
  for (const TraceEnd end : {TraceEnd::error, TraceEnd::hold, TraceEnd::cycle, TraceEnd::stop}) {
    const Availability more({{0, 4}, {60, 2}, {120, 16}}, 120, "made", end);
    const Availability without({{0, 4}, {60, 2}}, 120, "made", end);
    for (const char* policy : {"weak", "weak:max-cores=2", "weak:max-cores=8", "weak:max-batch=64",
                               "weak:max-batch=320", "strong:batch=128,max-cores=2"}) {
      const AvailabilitySteps options = *AvailabilityChoice(policy).make(32);
      const Trace trace = to_steps(more, options);
      EXPECT_EQ(trace.steps(), to_steps(without, options).steps()) << policy;
      EXPECT_EQ(trace.scaling(), to_steps(without, options).scaling()) << policy;
    }
  }
}

// In modelled time it may be held: its step is the largest that fits, and is known beforehand.
TEST(StepOfDeviceCount, KeepsWhatIsHeldWithinTheLimits) {
  const auto step_of = [](const std::string& policy, TraceEnd end) {
    return StepOfDeviceCount(Availability({{0, 4}, {60, 2}, {120, 16}}, 120, "made", end),
                             *AvailabilityChoice(policy).make(32));
  };
  const auto held = [&](const std::string& policy) {
    const StepOfDeviceCount step = step_of(policy, TraceEnd::hold);
    EXPECT_EQ(step(16)->batch_size, step.max_batch()) << policy;
    return *step(16);
  };
  EXPECT_EQ(held("weak"), (TraceStep{.batch_size = 512, .cores = 16}));
  EXPECT_EQ(held("weak:max-cores=8"), (TraceStep{.batch_size = 256, .cores = 8}));
  EXPECT_EQ(held("weak:max-cores=2"), (TraceStep{.batch_size = 64, .cores = 2}));
  EXPECT_EQ(held("weak:max-batch=320"), (TraceStep{.batch_size = 320, .cores = 16}));
  EXPECT_EQ(held("weak:max-batch=64"), (TraceStep{.batch_size = 64, .cores = 16}));
  EXPECT_EQ(*step_of("weak:max-cores=2", TraceEnd::hold)(2),
            (TraceStep{.batch_size = 32, .cores = 1}));
  EXPECT_EQ(step_of("weak", TraceEnd::cycle).max_batch(), 128);
}

TEST(AvailabilitySteps, MayRefuseTimeWithoutDevices) {
  EXPECT_EQ(error_stepping("weak:on-zero=error"),
            "made: there are 0 devices at 120 s; accepted: 1 and more, or on-zero=drop");
  EXPECT_EQ(error_stepping("weak:on-zero=error,quantum=4"),
            "made: there are 3 devices at 60 s; accepted: 4 and more, or on-zero=drop");
}

TEST(AvailabilitySteps, RefuseWhatCannotBe) {
  EXPECT_EQ(error_stepping("weak:quantum=11"),
            "made: no step has 11 devices; accepted: devices at the start of a step: a smaller "
            "quantum, or shorter steps");
  EXPECT_EQ(error_stepping("weak:samples-per-device=48"),
            "made: a worker's share of the batch is 48 samples; accepted: a multiple of the "
            "minibatch size, 32");
  EXPECT_EQ(error_stepping("weak:samples-per-device=48,quantum=2"), "no error");
  EXPECT_THAT(error_stepping("strong:batch=100"), HasSubstr("batch is 100 samples"));
  EXPECT_THAT(error_stepping("weak:quantum=4,max-cores=3"), HasSubstr("accepted: 4 and more"));
  EXPECT_THAT(error_stepping("weak:max-batch=31"), HasSubstr("less than a minibatch of 32"));
  EXPECT_THAT(error_stepping("weak:seconds-per-step=1,steps-per-sample=2"),
              HasSubstr("accepted: one of them"));
  EXPECT_THAT(error_stepping("weak:samples-per-device=1099511627776"),
              HasSubstr("a batch of up to 1099511627776"));
  const Availability long_one({{0, 1}}, kMaxAvailabilitySeconds, "long");
  EXPECT_THAT(error_of([&] { return to_steps(long_one, {.seconds_per_step = 1}); }),
              HasSubstr("long: it has room for 315576000 steps; accepted: up to 10000000"));
  EXPECT_THAT(error_of([&] { return to_steps(long_one, {.steps_per_sample = 1}); }),
              HasSubstr("no samples at regular intervals; accepted: seconds-per-step"));
}

TEST(AvailabilitySteps, RefuseOptionsOutOfTheirRange) {
  const auto error = [](const AvailabilitySteps& options) {
    return error_of([&] { return to_steps(four_minutes(), options); });
  };
  EXPECT_THAT(error({.quantum = 0}), HasSubstr("quantum is 0"));
  EXPECT_THAT(error({.samples_per_device = 0}), HasSubstr("samples-per-device is 0"));
  EXPECT_THAT(error({.policy = ScalingPolicy::strong}), HasSubstr("batch is 0"));
  EXPECT_THAT(error({.seconds_per_step = 0}), HasSubstr("seconds-per-step is 0"));
  EXPECT_THAT(error({.steps_per_sample = 0}), HasSubstr("steps-per-sample is 0"));
  EXPECT_THAT(error({.seconds_per_step = 60, .steps_per_sample = 1}), HasSubstr("one of them"));
  EXPECT_THAT(error({.minibatch = 0}), HasSubstr("minibatch size is 0"));
}

TEST(AvailabilitySteps, AreReadFromText) {
  EXPECT_EQ(*AvailabilityChoice("weak:quantum=4,max-cores=64,max-batch=4096,on-zero=error").make(8),
            (AvailabilitySteps{.quantum = 4,
                               .samples_per_device = 8,
                               .max_cores = 64,
                               .max_batch = 4096,
                               .minibatch = 8,
                               .on_zero = OnZero::error}));
  EXPECT_EQ(
      *AvailabilityChoice("strong:batch=256,steps-per-sample=5").make(8),
      (AvailabilitySteps{
          .policy = ScalingPolicy::strong, .batch = 256, .steps_per_sample = 5, .minibatch = 8}));
  const auto error = [](const std::string& text) {
    return error_of([&] { return *AvailabilityChoice(text).make(8); });
  };
  EXPECT_EQ(error("strongg"),
            "unknown policy 'strongg'; did you mean 'strong'? accepted: weak, strong");
  EXPECT_EQ(error("strong"), "strong needs a 'batch'; accepted: strong:batch=1024");
  EXPECT_THAT(error("weak:batch=4"), HasSubstr("unknown argument of weak 'batch'"));
  EXPECT_THAT(error("strong:batch=4,max-batch=8"), HasSubstr("unknown argument of strong"));
  EXPECT_THAT(error("weak:on-zero=pause"), HasSubstr("accepted: drop, error"));
}

nlohmann::json shared_reference(const std::string& name) {
  std::ifstream file(RUBATO_SHARED_DIR "/reference/" + name);
  return file ? nlohmann::json::parse(file) : nlohmann::json();
}

TEST(AvailabilityReference, MakesThePublishedTraceOfTheA100s) {
  const std::filesystem::path path = RUBATO_SHARED_DIR "/data/traces/a100_trace.csv";
  const nlohmann::json reference = shared_reference("availability_a100.json");
  if (!std::filesystem::exists(path) || reference.is_null())
    GTEST_SKIP() << path << " is not there";
  auto expected = reference.at("batchsize_run_lengths").get<RunLengths>();
  // The published file has two rows more than the rule that stands beside it, 105 steps for each
  // sample, has: one of the first batch size (ten samples of 56 GPUs, 1051 rows), and a last one.
  EXPECT_EQ(expected.front(), (RunLengths::value_type{1792, 10 * 105 + 1}));
  expected.front().second -= 1;
  EXPECT_EQ(expected.back(), (RunLengths::value_type{0, 1}));
  expected.pop_back();
  for (const char* time : {"steps-per-sample=105", "seconds-per-step=0.6"}) {
    const Trace trace =
        to_steps(read_availability(path),
                 *AvailabilityChoice(fmt::format("weak:quantum=4,{}", time)).make(32));
    EXPECT_EQ(run_lengths(trace), expected) << time;
    EXPECT_EQ(trace.length() + 2, reference.at("steps").get<std::int64_t>()) << time;
  }
}

TEST(AvailabilityReference, MakesThePublishedSaw) {
  const nlohmann::json reference = shared_reference("saw_trace.json");
  if (reference.is_null()) GTEST_SKIP() << "no saw_trace.json";
  const auto expected = reference.at("batchsize_run_lengths").get<RunLengths>();
  for (const char* text : {"saw:high=64,low=8,levels=3,top=57,between=102,bottom=462,cycles=25",
                           "steps:devices=64/36/8/36,seconds=57/102/462/102,cycles=25"}) {
    const Trace trace = to_steps(generate_availability(text),
                                 *AvailabilityChoice("weak:seconds-per-step=1").make(32));
    EXPECT_EQ(trace.length(), reference.at("steps").get<std::int64_t>());
    RunLengths runs = run_lengths(trace);
    ASSERT_GE(runs.size(), expected.size());
    runs.resize(expected.size());
    EXPECT_EQ(runs, expected) << text;
  }
}

}  // namespace
}  // namespace rubato
