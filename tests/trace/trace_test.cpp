#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include <rubato/steps/trace.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

Trace three_steps(TraceEnd end) {
  return Trace({{32, std::nullopt}, {64, 4}, {96, std::nullopt}}, end, "three");
}

std::int64_t batch_at(const Trace& trace, std::int64_t step) {
  const auto row = trace.at(StepIndex{step});
  return row ? row->batch_size : -1;
}

TEST(Trace, GivesItsRows) {
  const Trace trace = three_steps(TraceEnd::error);
  EXPECT_EQ(trace.length(), 3);
  EXPECT_EQ(trace.at(StepIndex{0}), (TraceStep{32, std::nullopt}));
  EXPECT_EQ(trace.at(StepIndex{1}), (TraceStep{64, 4}));
  EXPECT_EQ(trace.at(StepIndex{2}), (TraceStep{96, std::nullopt}));
}

TEST(Trace, EndsHoldsOrCycles) {
  for (const TraceEnd end : {TraceEnd::error, TraceEnd::stop}) {
    EXPECT_EQ(batch_at(three_steps(end), 2), 96);
    EXPECT_EQ(batch_at(three_steps(end), 3), -1);
    EXPECT_FALSE(three_steps(end).endless());
  }
  const Trace hold = three_steps(TraceEnd::hold);
  EXPECT_EQ(batch_at(hold, 3), 96);
  EXPECT_EQ(batch_at(hold, 1'000'000'000'000), 96);
  EXPECT_TRUE(hold.endless());
  const Trace cycle = three_steps(TraceEnd::cycle);
  EXPECT_EQ(batch_at(cycle, 3), 32);
  EXPECT_EQ(cycle.at(StepIndex{7}), (TraceStep{64, 4}));
  EXPECT_TRUE(cycle.endless());
}

TEST(Trace, NamesTheStep) {
  EXPECT_EQ(three_steps(TraceEnd::hold).where(StepIndex{1}), "three, step 2");
  EXPECT_EQ(Trace::constant(128).where(StepIndex{15}), "constant 128, step 16");
}

// Where a trace has ended, the row that is missing would stand behind the last one.
TEST(Trace, NamesTheLineOfAFile) {
  const auto line = [](TraceEnd end, std::int64_t step) {
    return Trace::parse_csv("step,batchsize\n0,32\n1,64\n", "t.csv", end).where(StepIndex{step});
  };
  EXPECT_EQ(line(TraceEnd::error, 0), "t.csv:2");
  EXPECT_EQ(line(TraceEnd::error, 1), "t.csv:3");
  EXPECT_EQ(line(TraceEnd::hold, 9), "t.csv:3");
  EXPECT_EQ(line(TraceEnd::cycle, 4), "t.csv:2");
  for (const TraceEnd end : {TraceEnd::error, TraceEnd::stop}) {
    for (const std::int64_t step : {2, 3, 1000}) EXPECT_EQ(line(end, step), "t.csv:4") << step;
  }
}

TEST(Trace, RejectsNoSteps) {
  EXPECT_EQ(error_of([] { Trace({}, TraceEnd::hold, "nothing"); }),
            "nothing: the trace has no steps; accepted: at least one");
}

TEST(Trace, RejectsValuesOutOfRange) {
  EXPECT_EQ(error_of([] { return Trace::constant(0); }),
            "constant 0, step 1: batch size 0; accepted: a whole number from 1 to 1099511627776");
  EXPECT_EQ(error_of([] {
              Trace({{32, std::nullopt}, {32, 0}}, TraceEnd::hold, "made");
            }),
            "made, step 2: cores 0; accepted: a whole number from 1 to 1048576");
  EXPECT_NE(error_of([] { return Trace::constant(kMaxBatchSize + 1); }), "no error");
  EXPECT_EQ(error_of([] { return Trace::constant(kMaxBatchSize); }), "no error");
}

TEST(Trace, RejectsCoresOfHostsThatAreNotTheSteps) {
  const auto error_with = [](const TraceStep& step) {
    return error_of([&] { Trace({step}, TraceEnd::hold, "made"); });
  };
  const std::string accepted = "; accepted: at least 0 of each, and together the step's";
  EXPECT_EQ(error_with({32, 6, {4, 2}}), "no error");
  EXPECT_EQ(error_with({32, 6, {6, 0}}), "no error");
  EXPECT_EQ(error_with({32, 7, {4, 2}}), "made, step 1: cores of hosts 4+2 of 7" + accepted);
  EXPECT_EQ(error_with({32, 2, {4, -2}}), "made, step 1: cores of hosts 4+-2 of 2" + accepted);
  EXPECT_EQ(error_with({32, std::nullopt, {4, 2}}), "made, step 1: cores of hosts 4+2" + accepted);
}

TEST(Trace, ConstantNeverEnds) {
  const Trace trace = Trace::constant(128);
  EXPECT_TRUE(trace.endless());
  EXPECT_EQ(batch_at(trace, 0), 128);
  EXPECT_EQ(batch_at(trace, 12'345), 128);
  EXPECT_EQ(trace.source(), "constant 128");
}

TEST(Trace, ElasticIsWhatItPromises) {
  const Trace trace = Trace::elastic();
  EXPECT_EQ(trace.end(), TraceEnd::cycle);
  EXPECT_GE(trace.length(), 40);
  EXPECT_LE(trace.length(), 80);
  std::set<std::int64_t> sizes;
  std::int64_t samples = 0;
  for (const TraceStep& step : trace.steps()) {
    EXPECT_EQ(step.batch_size % 32, 0);
    sizes.insert(step.batch_size);
    samples += step.batch_size;
  }
  EXPECT_EQ(*sizes.begin(), 32);
  EXPECT_EQ(*sizes.rbegin(), 512);
  EXPECT_GE(sizes.size(), 8U);
  // Idle cores of 8 at minibatches of 32, and uneven numbers of substeps on 8 busy cores.
  EXPECT_TRUE(std::any_of(sizes.begin(), sizes.end(), [](auto size) { return size < 256; }));
  EXPECT_TRUE(std::any_of(sizes.begin(), sizes.end(),
                          [](auto size) { return size > 256 && size % 256 != 0; }));
  // Epochs of the built-in digits meet different parts of it.
  EXPECT_NE(samples % 12'000, 0);
}

TEST(TraceDeathTest, RejectsAStepBeforeTheFirst) {
  EXPECT_DEATH(static_cast<void>(Trace::constant(32).at(StepIndex{-1})), "counted from 0");
}

}  // namespace
}  // namespace rubato
