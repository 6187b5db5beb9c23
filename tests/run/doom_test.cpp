// The step from which on a run was lost: runs that are made to fail at a known one.

#include "runs/run/doom.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "run/runs.hpp"
#include "run/runs_in_folders.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using testing::Ge;
using testing::Le;

constexpr double kUsualRate = 0.05;

// 20 epochs of 8 steps; its loss falls from 1.2 to 0.05 within 40 steps.
RunConfiguration usual() {
  return {.model = "quadratic:dim=5,samples=512",
          .trace = "64",
          .reference_batch = 64,
          .learning_rate = kUsualRate,
          .epochs = 20,
          .threads = 2,
          .digest = "every=1"};
}

class DoomTest : public test::RunsInFolders {
 protected:
  using RunsInFolders::train;
  // Trains the fork of a run after a step with another rate, for so many samples in all.
  RunEnd fork(const std::string& name, const std::string& of, std::int64_t step, double rate,
              std::optional<std::int64_t> samples = {}) const {
    RunConfiguration run = usual();
    run.learning_rate = rate;
    run.samples = samples;
    return RunsInFolders::fork(name, run, of, step).end;
  }
  // A run whose rate was another from step 40 to `end`.
  RunEnd accident(const std::string& name, double rate, std::int64_t end) const {
    constexpr std::int64_t kBatch = 64;
    train("before", usual());
    fork("meanwhile", "before", 40, rate, end * kBatch);
    return fork(name, "meanwhile", end, kUsualRate);
  }
  // A run whose rate is that from the beginning.
  void train(const std::string& name, double rate) const {
    RunConfiguration run = usual();
    run.learning_rate = rate;
    train(name, run);
  }
  [[nodiscard]] DoomRequest request(const std::string& name) const {
    DoomRequest request{.run = folder(name),
                        .configuration = configuration_of_run(folder(name), RunConfiguration()),
                        .orders = 5};
    request.configuration.threads = 2;
    return request;
  }

  const DoomParts parts_{.replay = replay_};
};

// What was lost after each step that was tried: "40: 0 of 5".
std::vector<std::string> tried(const DoomResult& result) {
  std::vector<std::string> texts;
  for (const TriedStep& tried : result.tried) {
    texts.push_back(fmt::format("{}: {} of {}", tried.step, tried.lost().count, tried.lost().of));
  }
  return texts;
}

std::vector<std::string> changes(const DoomResult& result) {
  std::vector<std::string> texts;
  for (const TriedChange& change : result.changes) {
    texts.push_back(
        fmt::format("{}: {} of {}", change.name, change.saved().count, change.saved().of));
  }
  return texts;
}

TEST_F(DoomTest, NamesAStepOfTheAccident) {
  accident("run", 400 * kUsualRate, 45);
  const DoomResult result = doom(request("run"), parts_);
  EXPECT_TRUE(result.facts.lost);
  EXPECT_THAT(result.inevitable, Optional(AllOf(Ge(41), Le(45))));
  EXPECT_THAT(tried(result), ElementsAre("40: 0 of 5", "41: 0 of 5", "42: 0 of 5", "43: 5 of 5"));
  EXPECT_THAT(changes(result), ElementsAre("half the rate, 0.025: 0 of 5", "rule root: 0 of 5",
                                           "momentum reset: 0 of 5"));
  EXPECT_NE(result.changes.back().forks.front().loss, result.tried.back().forks.front().loss);
}

// The steps before the last fork are those of its run, and of the run that this one comes from.
TEST_F(DoomTest, FollowsARunThatDivergedToTheAccident) {
  EXPECT_EQ(accident("run", 1e35, 42), RunEnd::diverged);
  const DoomResult result = doom(request("run"), parts_);
  EXPECT_TRUE(result.facts.diverged);
  EXPECT_THAT(result.inevitable, Optional(AllOf(Ge(41), Le(42))));
  EXPECT_THAT(result.tried.front().lost().count, 0);
  EXPECT_THAT(result.tried.back().lost().count, 5);
}

TEST_F(DoomTest, FindsARunThatWasLostFromTheBeginning) {
  train("run", 4.0);
  const DoomResult result = doom(request("run"), parts_);
  EXPECT_THAT(result.inevitable, Optional(0));
  EXPECT_THAT(tried(result).front(), "0: 5 of 5");
  EXPECT_THAT(changes(result), ElementsAre("half the rate, 2: 5 of 5", "rule root: 0 of 5",
                                           "momentum reset: 0 of 5"));
}

TEST_F(DoomTest, TrainsNothingForARunThatIsFine) {
  train("run", kUsualRate);
  const DoomResult result = doom(request("run"), parts_);
  EXPECT_FALSE(result.facts.lost);
  EXPECT_EQ(result.inevitable, std::nullopt);
  EXPECT_THAT(result.tried, IsEmpty());
}

// The run ends just above the bound, and other orders end on both sides of it.
TEST_F(DoomTest, FindsARunThatWasLostAtItsEndOnly) {
  RunConfiguration run = usual();
  run.seed = 4;
  train("run", run);
  DoomRequest asked = request("run");
  asked.lost_above = 0.00206;
  const DoomResult result = doom(asked, parts_);
  EXPECT_TRUE(result.facts.lost);
  EXPECT_THAT(result.inevitable, Optional(160));
  EXPECT_EQ(result.tried.back().step, 159);
  EXPECT_THAT(result.changes, IsEmpty());
}

TEST_F(DoomTest, DoesNotDependOnThreads) {
  accident("run", 400 * kUsualRate, 45);
  DoomRequest asked = request("run");
  const auto losses = [&](std::int64_t threads) {
    asked.configuration.threads = threads;
    std::vector<std::optional<double>> all;
    for (const TriedStep& tried : doom(asked, parts_).tried) {
      for (const DoomedFork& fork : tried.forks) all.push_back(fork.loss);
    }
    return all;
  };
  EXPECT_EQ(losses(1), losses(3));
}

// The forks are those of `rubato train --from`.
TEST_F(DoomTest, NamesTheSeedsOfItsForks) {
  accident("run", 400 * kUsualRate, 45);
  const DoomResult result = doom(request("run"), parts_);
  const DoomedFork& first = result.tried.front().forks.front();
  RunConfiguration again = configuration_of_run(folder("run"), RunConfiguration());
  again.from = point("run", result.tried.front().step);
  again.seed = first.seed;
  const RunOutcome outcome = test::outcome_of(again, location_of_fork({}, again, parts_.replay));
  EXPECT_EQ(first.loss, outcome.summary->result.final_test->loss);
}

TEST_F(DoomTest, EndsForksAfterSoManySteps) {
  accident("run", 400 * kUsualRate, 45);
  DoomRequest asked = request("run");
  asked.steps = 3;
  std::int64_t most = 0;
  std::int64_t fork_of = 0;
  DoomParts parts = parts_;
  parts.on_fork = [&](const std::string& what, std::int64_t /*number*/) {
    fork_of = std::stoll(what.substr(std::string("after step ").size()));
  };
  parts.replay.on_step = [&](std::int64_t steps) {
    if (fork_of > 0) most = std::max(most, steps - fork_of);
  };
  static_cast<void>(doom(asked, parts));
  EXPECT_EQ(most, 3);
}

// The accident of steps 40 to 44 is in the trace, so forks from before it have it, too.
TEST_F(DoomTest, EndsForksFromBeforeTheAccidentAfterIt) {
  std::string rows = "step,batchsize\n";
  for (int step = 0; step < 200; ++step) {
    rows += fmt::format("{},{}\n", step, step >= 40 && step < 45 ? 32 : 64);
  }
  write_file(folder("t.csv"), rows);
  RunConfiguration run = usual();
  run.trace = folder("t.csv").string();
  run.extensions.rules.add(
      "accident", [](const RuleInput& step) { return step.batch_size == 32 ? 400.0 : 1.0; });
  run.rule = {"accident", run.extensions};
  train("run", run);
  DoomRequest asked{
      .run = folder("run"), .configuration = configuration_of_run(folder("run"), run), .orders = 3};
  asked.configuration.threads = 2;
  const DoomResult whole = doom(asked, parts_);
  ASSERT_TRUE(whole.facts.lost);
  asked.steps = 20;
  const DoomResult result = doom(asked, parts_);
  EXPECT_EQ(result.inevitable, whole.inevitable);
  EXPECT_EQ(result.tried.front().step, whole.tried.front().step);
  EXPECT_EQ(result.tried.front().lost().count, whole.tried.front().lost().count);
}

// The fork whose test loss is not finite has not diverged by its steps.
TEST_F(DoomTest, TakesATestLossThatIsNotFiniteForDivergence) {
  RunConfiguration run = usual();
  run.epochs = 2;
  train("run", run);
  const fs::path metrics = folder("run") / "metrics.jsonl";
  std::string text = read_file(metrics);
  const std::string key = "\"test_loss\":";
  ASSERT_NE(text.rfind(key), std::string::npos);
  const std::size_t number = text.rfind(key) + key.size();
  text.replace(number, text.find_first_of(",}", number) - number, "null");
  write_file(metrics, text);
  // It says that the metrics have changed.
  fs::remove(folder("run") / "summary.json");
  DoomRequest asked = request("run");
  asked.orders = 1;
  const DoomResult result = doom(asked, parts_);
  EXPECT_TRUE(result.facts.diverged);
  EXPECT_TRUE(result.facts.lost);
  EXPECT_FALSE(result.facts.end.has_value());
}

TEST_F(DoomTest, ChangesOnlyWhatTheRunHas) {
  RunConfiguration run = usual();
  run.learning_rate = 4;
  run.momentum = 0;
  run.rule = "root";
  train("run", run);
  EXPECT_THAT(changes(doom(request("run"), parts_)), ElementsAre(StartsWith("half the rate, 2:")));
}

TEST_F(DoomTest, NeedsARunWithSteps) {
  EXPECT_THAT(
      error_of([&] { return doom({.run = folder("none"), .configuration = usual()}, parts_); }),
      HasSubstr("metrics.jsonl"));
}

TEST(TrainingCourse, IsLostWithLessThanHalfOfWhatItHadLearned) {
  TrainingCourse course;
  course.add_step(2);
  EXPECT_EQ(course.bound(), 1.8);
  for (int step = 1; step < 10; ++step) course.add_step(1);
  EXPECT_EQ(course.best(), 1.1);
  course.add_test(0.5);
  EXPECT_EQ(course.best(), 0.5);
  EXPECT_EQ(course.bound(), 1.25);
  EXPECT_EQ(course.end(), 0.5);
  EXPECT_EQ(course.suspect(), 0);
  course.add_step(1);
  course.add_step(2.5);
  course.add_step(0.1);
  EXPECT_EQ(course.suspect(), 10);
  course.add_test(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(course.end()));
  EXPECT_EQ(course.best(), 0.5);
}

TEST(TrainingCourse, CountsSkippedStepsInThatOfTheSuspect) {
  TrainingCourse course;
  course.add_skipped_step();
  course.add_step(2);
  EXPECT_EQ(course.beginning(), 2);
  course.add_skipped_step();
  course.add_test(0.5);
  course.add_step(3);
  EXPECT_EQ(course.suspect(), 3);
}

TEST(TrainingCourse, EndsWithItsLastTenStepsIfNothingIsTested) {
  TrainingCourse course;
  course.add_step(4);
  course.add_step(2);
  EXPECT_EQ(course.end(), 3);
  for (int step = 0; step < 10; ++step) course.add_step(1);
  EXPECT_EQ(course.end(), 1);
  course.add_step(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(course.end()));
}

// The intervals of Wilson's score method, as R's prop.test(correct = FALSE) has them.
TEST(Share, HasAnInterval) {
  const auto expect = [](std::int64_t count, std::int64_t of, double low, double high) {
    constexpr double kDigits = 5e-5;
    const Share share = share_of(count, of);
    EXPECT_THAT(share.low, DoubleNear(low, kDigits)) << count << " of " << of;
    EXPECT_THAT(share.high, DoubleNear(high, kDigits)) << count << " of " << of;
  };
  expect(0, 8, 0, 0.3244);
  expect(8, 8, 0.6756, 1);
  expect(3, 10, 0.1078, 0.6032);
  expect(1, 1, 0.2065, 1);
}

}  // namespace
}  // namespace rubato
