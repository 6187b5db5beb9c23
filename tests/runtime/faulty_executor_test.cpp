#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "base/core/seconds.hpp"
#include "loop/runtime/step_executor.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr std::size_t kStepValues = 5;
constexpr std::int64_t kStepMinibatches = 11;

StepPlan step_of(std::int64_t cores) {
  return {.index = StepIndex{4},
          .batch_size = kStepMinibatches,
          .cores = cores,
          .first_minibatch = MinibatchIndex{20},
          .minibatches = kStepMinibatches};
}

// What an attempt that failed told.
struct Attempt {
  std::int64_t cores = 0;
  std::vector<std::int64_t> dead{};
  std::int64_t left = 0;
};

// What a step came to.
struct Outcome {
  std::vector<double> sum{};
  std::int64_t cores = 0;
  std::vector<Attempt> failed{};
  // How often each minibatch's substep has begun.
  std::map<MinibatchIndex, int> substeps{};
};

Outcome run(std::int64_t cores, int threads, const FaultOptions& faults,
            Assignment assignment = Assignment::contiguous) {
  Workers workers(threads);
  StepExecutor<double> executor(workers, {.values = kStepValues, .max_leaves = kStepMinibatches});
  FaultyExecutor<double> faulty(executor, faults, {});
  StepPlan step = step_of(cores);
  Outcome outcome;
  std::mutex mutex;
  const auto sum = faulty.run(
      step, assignment,
      [&](const SubstepTask& task, PartialSum<double>& out) {
        for (std::size_t i = 0; i < kStepValues; ++i) {
          out.values[i] +=
              1.0 / (static_cast<double>(task.minibatch.value()) + 3 * static_cast<double>(i));
        }
        const std::lock_guard lock(mutex);
        ++outcome.substeps[task.minibatch];
      },
      [&](const StepPlan& attempt, std::span<const FaultRecord> died, std::int64_t left) {
        Attempt failed{.cores = attempt.cores, .left = left};
        for (const FaultRecord& fault : died) failed.dead.push_back(fault.core.value());
        outcome.failed.push_back(failed);
      });
  outcome.sum.assign(sum.values().begin(), sum.values().end());
  outcome.cores = step.cores;
  return outcome;
}

TEST(FaultyExecutor, RedoesTheStepOnTheCoresLeftToTheSameSum) {
  const Outcome whole = run(4, 1, {});
  EXPECT_TRUE(whole.failed.empty());
  EXPECT_EQ(whole.cores, 4);
  for (const int threads : {1, 2, 4}) {
    for (const Assignment assignment : {Assignment::contiguous, Assignment::strided}) {
      const Outcome outcome = run(4, threads,
                                  {.planned = {{CoreRank{1}, StepIndex{4}, 2},
                                               {CoreRank{3}, StepIndex{4}, 0},
                                               {CoreRank{0}, StepIndex{5}, 0}}},
                                  assignment);
      EXPECT_EQ(outcome.sum, whole.sum);
      EXPECT_EQ(outcome.cores, 2);
      ASSERT_EQ(outcome.failed.size(), 1U);
      EXPECT_EQ(outcome.failed[0].cores, 4);
      EXPECT_THAT(outcome.failed[0].dead, ElementsAre(1, 3));
      EXPECT_EQ(outcome.failed[0].left, 2);
      EXPECT_EQ(outcome.substeps.size(), kStepMinibatches);
    }
  }
}

TEST(FaultyExecutor, ACoreDiesInItsOwnSubstep) {
  // Of the only core: what it did before its death is done twice.
  const Outcome outcome = run(1, 2, {.planned = {{CoreRank{0}, StepIndex{4}, 3}}});
  for (const auto& [minibatch, times] : outcome.substeps) {
    EXPECT_EQ(times, minibatch.value() < 23 ? 2 : 1) << minibatch.value();
  }
  EXPECT_EQ(outcome.cores, 1) << "a new one takes over";
}

TEST(FaultyExecutor, GoesOnUntilNoCoreDies) {
  const Outcome whole = run(8, 1, {});
  const Outcome outcome = run(8, 2, {.rate = 0.9, .seed = 3});
  EXPECT_EQ(outcome.sum, whole.sum);
  EXPECT_GT(outcome.failed.size(), 2U);
  for (std::size_t i = 1; i < outcome.failed.size(); ++i) {
    EXPECT_EQ(outcome.failed[i].cores, outcome.failed[i - 1].left);
  }
  EXPECT_EQ(outcome.cores, outcome.failed.back().left);
}

// A substep that takes a millisecond at least.
void work_for_a_millisecond(const SubstepTask&, PartialSum<double>&) {
  const Stopwatch busy;
  while (busy.seconds() < 0.001) {
  }
}

// One core for each minibatch, on one thread.
void run_with_stragglers(std::vector<Straggler> stragglers,
                         const FaultyExecutor<double>::Sleep& sleep) {
  Workers workers(1);
  StepExecutor<double> executor(workers, {.values = kStepValues, .max_leaves = kStepMinibatches});
  FaultyExecutor<double> faulty(executor, {}, std::move(stragglers), sleep);
  StepPlan step = step_of(kStepMinibatches);
  static_cast<void>(faulty.run(step, Assignment::contiguous, work_for_a_millisecond, {}));
}

TEST(FaultyExecutor, HoldsUpOnlyTheStragglersAndAsLongAsTheirFactorSays) {
  std::vector<double> held_up;
  run_with_stragglers({{.core = CoreRank{3}, .factor = 50},
                       {.core = CoreRank{5}, .factor = 1},
                       {.core = CoreRank{kStepMinibatches}, .factor = 2}},
                      [&](double seconds) { held_up.push_back(seconds); });
  EXPECT_THAT(held_up, ElementsAre(testing::Ge(0.001 * 49)));
}

TEST(FaultyExecutor, LetsTheThreadOfAStragglerSleep) {
  const Stopwatch stopwatch;
  run_with_stragglers({{.core = CoreRank{3}, .factor = 20}}, {});
  EXPECT_GE(stopwatch.seconds(), 0.001 * (kStepMinibatches - 1 + 20));
}

TEST(FaultyExecutor, RejectsAStragglerOutOfRange) {
  EXPECT_THAT(error_of([] { run_with_stragglers({{.core = CoreRank{0}, .factor = 0.9}}, {}); }),
              HasSubstr("factor 0.9"));
  EXPECT_THAT(error_of([] { run_with_stragglers({{.core = CoreRank{-1}, .factor = 2}}, {}); }),
              HasSubstr("counts from 0"));
}

}  // namespace
}  // namespace rubato
