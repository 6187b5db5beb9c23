#include <gmock/gmock.h>

#include <rubato/steps/plan.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

// Data of 10 minibatches of 32 and a rest of 5 samples.
constexpr PlanOptions kOptions{.dataset_size = 325, .minibatch_size = 32, .cores = 4};

Trace trace_of(const std::vector<std::int64_t>& minibatches, TraceEnd end) {
  std::vector<TraceStep> steps;
  steps.reserve(minibatches.size());
  for (const std::int64_t count : minibatches) steps.push_back({count * 32, std::nullopt});
  return Trace(std::move(steps), end, "made");
}

// The first step and the end of every epoch, at most `limit` of them; a "+" marks incomplete ones.
std::string ranges(Planner planner, int limit = 100) {
  std::string text;
  for (int i = 0; i < limit; ++i) {
    const std::optional<EpochPlan> epoch = planner.next();
    if (!epoch) break;
    EXPECT_EQ(epoch->index.value(), i);
    text += std::to_string(epoch->first_step().value()) + "-" +
            std::to_string(epoch->end_step().value()) + (epoch->complete ? " " : "+ ");
  }
  return text;
}

TEST(Planner, CutsEpochsThatFit) {
  const Planner planner(trace_of({4, 6, 5, 4, 10, 9, 1, 3, 8}, TraceEnd::error), kOptions);
  EXPECT_EQ(planner.minibatches_per_epoch(), 10);
  EXPECT_EQ(ranges(planner), "0-2 2-4 4-5 5-7 7-8 ");
}

TEST(Planner, PlansEveryStep) {
  Planner planner(trace_of({4, 6, 5, 4, 10}, TraceEnd::error), kOptions);
  static_cast<void>(planner.next());
  const EpochPlan epoch = planner.next().value();
  ASSERT_EQ(epoch.steps.size(), 2U);
  EXPECT_EQ(epoch.minibatches(), 9);
  EXPECT_EQ(epoch.steps[1].index, StepIndex{3});
  EXPECT_EQ(epoch.steps[1].batch_size, 128);
  EXPECT_EQ(epoch.steps[1].minibatches, 4);
  EXPECT_EQ(epoch.steps[1].first_minibatch, MinibatchIndex{5});
  EXPECT_EQ(epoch.steps[1].cores, 4);
  EXPECT_EQ(epoch.steps[1].share_of(CoreRank{1}, Assignment::contiguous).first, MinibatchIndex{6});
}

TEST(Planner, TakesTheCoresOfTheTrace) {
  Planner planner(Trace({{320, 7}, {320, std::nullopt}}, TraceEnd::hold, "made"), kOptions);
  EXPECT_EQ(planner.next()->steps.front().cores, 7);
  EXPECT_EQ(planner.next()->steps.front().cores, 4);
}

TEST(Planner, DropsAnIncompleteEpochOnError) {
  EXPECT_EQ(ranges(Planner(trace_of({10, 4, 5}, TraceEnd::error), kOptions)), "0-1 ");
  EXPECT_EQ(ranges(Planner(trace_of({4, 5}, TraceEnd::error), kOptions)), "");
}

TEST(Planner, GivesAnIncompleteEpochOnStop) {
  EXPECT_EQ(ranges(Planner(trace_of({10, 4, 5}, TraceEnd::stop), kOptions)), "0-1 1-3+ ");
  EXPECT_EQ(ranges(Planner(trace_of({10, 4, 6}, TraceEnd::stop), kOptions)), "0-1 1-3 ");
}

TEST(Planner, AnswersNothingForGoodAfterTheEnd) {
  Planner planner(trace_of({10, 4}, TraceEnd::stop), kOptions);
  EXPECT_TRUE(planner.next().has_value());
  EXPECT_TRUE(planner.next().has_value());
  EXPECT_FALSE(planner.next().has_value());
  EXPECT_FALSE(planner.next().has_value());
}

TEST(Planner, HoldsTheLastRow) {
  EXPECT_EQ(ranges(Planner(trace_of({10, 4, 3}, TraceEnd::hold), kOptions), 4),
            "0-1 1-4 4-7 7-10 ");
}

TEST(Planner, CyclesTheTrace) {
  EXPECT_EQ(ranges(Planner(trace_of({6, 4, 3}, TraceEnd::cycle), kOptions), 4), "0-2 2-4 4-6 6-8 ");
  EXPECT_EQ(ranges(Planner(trace_of({6, 3, 2}, TraceEnd::cycle), kOptions), 3), "0-2 2-4 4-6 ");
}

TEST(Planner, FillsAnEpochToItsLastMinibatch) {
  EXPECT_EQ(ranges(Planner(Trace::constant(32), kOptions), 2), "0-10 10-20 ");
}

TEST(Planner, GoesToAnEpochAndAStep) {
  Planner planner(trace_of({4, 6, 5, 4, 10, 9}, TraceEnd::cycle), kOptions);
  planner.go_to(EpochIndex{7}, StepIndex{3});
  EXPECT_EQ(planner.next_step(), StepIndex{3});
  const EpochPlan epoch = planner.next().value();
  EXPECT_EQ(epoch.index, EpochIndex{7});
  EXPECT_EQ(epoch.first_step(), StepIndex{3});
  EXPECT_EQ(epoch.steps.front().first_minibatch, MinibatchIndex{0});
  EXPECT_EQ(planner.next()->index, EpochIndex{8});
  // Backwards, too.
  planner.go_to(EpochIndex{0}, StepIndex{0});
  EXPECT_EQ(planner.next()->index, EpochIndex{0});
}

std::string error_planning(const Trace& trace, PlanOptions options) {
  return error_of([&] { Planner(trace, options); });
}

TEST(Planner, RejectsABatchThatIsNoMultiple) {
  const Trace trace = Trace::parse_csv("step,batchsize\n0,64\n1,100\n", "t.csv");
  EXPECT_EQ(
      error_planning(trace, kOptions),
      "t.csv:3: batch size 100 is not a multiple of the minibatch size 32; accepted: a multiple, "
      "such as 96 or 128");
  EXPECT_EQ(
      error_planning(Trace::constant(20), kOptions),
      "constant 20, step 1: batch size 20 is not a multiple of the minibatch size 32; accepted: a "
      "multiple, such as 32");
}

TEST(Planner, RejectsAStepLargerThanAnEpoch) {
  const Trace trace = Trace::parse_csv("step,batchsize\n0,320\n1,352\n", "t.csv", TraceEnd::stop);
  EXPECT_EQ(error_planning(trace, kOptions),
            "t.csv:3: batch size 352 is larger than an epoch (10 minibatches of 32 samples); "
            "accepted: at most 320, or more with --remainder carry");
}

// Epochs of 10 samples, minibatches of 4.
constexpr PlanOptions kCarry{
    .dataset_size = 10, .minibatch_size = 4, .cores = 2, .remainder = Remainder::carry};

// The minibatches of every epoch's steps, "of+" those before them, "|" between epochs.
std::string carried(Planner planner, int limit) {
  std::string text;
  for (int i = 0; i < limit; ++i) {
    const std::optional<EpochPlan> epoch = planner.next();
    if (!epoch) break;
    for (const StepPlan& step : epoch->steps) {
      text += std::to_string(step.first_minibatch.value()) + "+" +
              std::to_string(step.minibatches) +
              (step.shift > 0 ? "s" + std::to_string(step.shift) : "") + " ";
    }
    text += std::to_string(samples_of(*epoch, planner.options())) + (epoch->complete ? "| " : "+ ");
  }
  return text;
}

TEST(PlannerCarry, GoesOnInTheNextEpoch) {
  const Planner hold(Trace({{8, std::nullopt}}, TraceEnd::hold, "made"), kCarry);
  // 8 and 2; 6 of that step, and 4; 4, and 6; 2, and 8.
  EXPECT_EQ(carried(hold, 4), "0+2 2+2 10| 1+2s2 10| 1+2 10| 0+2s2 10| ");
  const Planner large(Trace({{28, std::nullopt}, {4, std::nullopt}}, TraceEnd::cycle, "made"),
                      kCarry);
  EXPECT_EQ(carried(large, 5), "0+7 10| 10| 2+1 10| 0+7s2 10| 10| ");
  const Planner stop(
      Trace({{8, std::nullopt}, {4, std::nullopt}, {4, std::nullopt}}, TraceEnd::stop, "made"),
      kCarry);
  EXPECT_EQ(carried(stop, 5), "0+2 2+1 10| 0+1s2 6+ ");
  // Of 24 samples four are of the third epoch, which ends with the four of the next step.
  const Planner late(Trace({{24, std::nullopt}, {4, std::nullopt}}, TraceEnd::stop, "made"),
                     kCarry);
  EXPECT_EQ(carried(late, 5), "0+6 10| 10| 1+1 8+ ");
}

TEST(PlannerCarry, CountsWhatATraceHolds) {
  const auto extent = [](const std::vector<TraceStep>& rows) {
    return extent_of(Planner(Trace(rows, TraceEnd::error, "made"), kCarry));
  };
  EXPECT_EQ(extent({{28, {}}, {4, {}}}).epochs, 3);
  EXPECT_EQ(extent({{28, {}}, {4, {}}}).further_steps, 0);
  EXPECT_EQ(extent({{28, {}}, {4, {}}}).further_samples, 2);
  EXPECT_EQ(extent({{28, {}}}).epochs, 2);
  EXPECT_EQ(extent({{28, {}}}).further_samples, 8);
  EXPECT_EQ(extent({{12, {}}, {4, {}}}).further_steps, 1);
  EXPECT_EQ(extent({{12, {}}, {4, {}}}).further_samples, 6);
}

TEST(PlannerCarry, EndsWithTheEpochsThatAreAskedFor) {
  const auto shortened = [](std::int64_t epochs, std::int64_t batch_size, StepPlace place) {
    PlanOptions options = kCarry;
    options.epochs = epochs;
    const StepPlan plan =
        StepPlanner(options).plan(place, {.batch_size = batch_size, .cores = std::nullopt}).value();
    return std::pair(plan.batch_size, plan.minibatches);
  };
  EXPECT_THAT(shortened(0, 400, {}), testing::Pair(400, 100));
  EXPECT_THAT(shortened(2, 400, {}), testing::Pair(20, 5));
  EXPECT_THAT(shortened(1, 400, {}), testing::Pair(10, 3)) << "the last minibatch is what is left";
  const StepPlace late{.step = {}, .epoch = EpochIndex{1}, .samples = 6};
  EXPECT_THAT(shortened(2, 8, late), testing::Pair(4, 1));
  EXPECT_THAT(shortened(3, 8, late), testing::Pair(8, 2));
  EXPECT_THAT(shortened(2, 8, {.step = {}, .epoch = EpochIndex{1}, .samples = 5}),
              testing::Pair(5, 2));
  EXPECT_THAT(shortened(std::int64_t{1} << 62, 400, {}), testing::Pair(400, 100));
  // The largest step begins in the first of so many epochs, and ends in the last.
  const std::int64_t epochs = kMaxBatchSize / 10 + 1;
  EXPECT_EQ(shortened(epochs, kMaxBatchSize, {.step = {}, .epoch = {}, .samples = 9}).first,
            epochs * 10 - 9);
}

TEST(PlannerCarry, GoesToTheMiddleOfAnEpoch) {
  Planner planner(Trace({{8, std::nullopt}}, TraceEnd::hold, "made"), kCarry);
  planner.go_to(EpochIndex{3}, StepIndex{7}, 6);
  const EpochPlan epoch = planner.next().value();
  EXPECT_EQ(epoch.index, EpochIndex{3});
  ASSERT_EQ(epoch.steps.size(), 1U);
  EXPECT_EQ(epoch.steps[0].first_minibatch, MinibatchIndex{1});
  EXPECT_EQ(epoch.steps[0].shift, 2);
  planner.go_to(EpochIndex{3}, StepIndex{7}, 10);
  const EpochPlan none = planner.next().value();
  EXPECT_TRUE(none.steps.empty());
  EXPECT_EQ(none.first_step(), StepIndex{7});
  EXPECT_EQ(none.end_step(), StepIndex{7});
}

TEST(Planner, RejectsCountsOutOfRange) {
  const Trace trace = Trace::constant(32);
  EXPECT_EQ(error_planning(trace, {.dataset_size = 0}),
            "the data set is empty; accepted: at least one minibatch (32 samples)");
  EXPECT_EQ(error_planning(trace, {.dataset_size = -5}),
            "the data set is empty; accepted: at least one minibatch (32 samples)");
  EXPECT_EQ(
      error_planning(trace, {.dataset_size = 31}),
      "the data set holds 31 samples, less than one minibatch of 32; accepted: a minibatch of at "
      "most 31");
  EXPECT_EQ(error_planning(trace, {.dataset_size = 64, .minibatch_size = 0}),
            "minibatches of 0 samples; accepted: 1 to 1099511627776");
  EXPECT_EQ(error_planning(trace, {.dataset_size = 64, .cores = 0}),
            "0 cores; accepted: 1 to 1048576");
  EXPECT_EQ(error_planning(trace, {.dataset_size = 64, .cores = kMaxCores + 1}),
            "1048577 cores; accepted: 1 to 1048576");
  EXPECT_EQ(error_planning(trace, {.dataset_size = kMaxDatasetSize + 1}),
            "a data set of 214748364 samples; accepted: at most 214748363");
  EXPECT_EQ(error_planning(trace, {.dataset_size = 32}), "no error");
}

TEST(TraceExtent, CountsEpochsAndTheRest) {
  const TraceExtent extent =
      extent_of(Planner(trace_of({10, 4, 6, 3, 4}, TraceEnd::error), kOptions));
  EXPECT_EQ(extent.epochs, 2);
  EXPECT_EQ(extent.further_steps, 2);
  EXPECT_EQ(extent.further_samples, 7 * 32);
}

TEST(TraceExtent, IsOfTheRowsWhateverFollowsAndWhereverThePlannerStands) {
  for (const auto& [end, name] : kTraceEnds) {
    Planner planner(trace_of({10, 4, 6, 3, 4}, end), kOptions);
    static_cast<void>(planner.next());
    EXPECT_EQ(extent_of(planner).epochs, 2) << name;
    EXPECT_EQ(extent_of(planner).further_steps, 2) << name;
  }
}

TEST(RequireEpochs, RejectsATraceThatEndsEarly) {
  const Trace trace = Trace::parse_csv("step,batchsize\n0,320\n1,320\n2,64\n", "t.csv");
  const auto error_requiring = [&](std::int64_t epochs) {
    return error_of([&] { require_epochs(Planner(trace, kOptions), epochs); });
  };
  EXPECT_EQ(error_requiring(2), "no error");
  EXPECT_EQ(
      error_requiring(3),
      "t.csv:4: the trace ends after 2 epochs and 1 further step, but 3 are asked for; accepted: "
      "at most 2 epochs, or hold, cycle or stop at the trace's end (--on-trace-end)");
}

TEST(RequireEpochs, KnowsATraceThatHoldsNoEpoch) {
  EXPECT_EQ(error_of([] {
              require_epochs(Planner(trace_of({1, 2}, TraceEnd::error), kOptions), 1);
            }),
            "made, step 2: the trace ends after 0 epochs and 2 further steps, but 1 is asked for; "
            "accepted: hold, cycle or stop at the trace's end (--on-trace-end)");
}

TEST(RequireEpochs, LetsEveryOtherEndPass) {
  for (const TraceEnd end : {TraceEnd::hold, TraceEnd::cycle, TraceEnd::stop}) {
    EXPECT_EQ(error_of([&] { require_epochs(Planner(trace_of({1}, end), kOptions), 100); }),
              "no error");
  }
}

}  // namespace
}  // namespace rubato
