#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/records.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/state/sha256.hpp"
#include "support/error_of.hpp"
#include "support/file_calls.hpp"
#include "support/json_fields.hpp"
#include "support/matchers.hpp"
#include "support/no_training.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::no_training;
using test::read_file;

class ReportFiles : public testing::Test {
 protected:
  [[nodiscard]] const fs::path& folder() const { return folder_.path(); }

 private:
  test::TempFolder folder_;
};

StepRecord step_record() {
  StepRecord step;
  step.epoch = EpochIndex{1};
  step.plan = {.index = StepIndex{7},
               .batch_size = 160,
               .cores = 3,
               .first_minibatch = MinibatchIndex{4},
               .minibatches = 5};
  step.scale = 1.25;
  step.learning_rate = 0.0125;
  step.gain = 1.25;
  step.iterations = 9.5;
  step.loss = 0.5;
  step.seconds = {.data = 0.25, .compute = 4, .reduce = 0.5, .update = 0.125, .wall = 3};
  return step;
}

TEST_F(ReportFiles, ARunFolderIsMadeWithItsParents) {
  const RunFolder run(folder() / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder() / "a" / "b"));
  run.write("note.txt", "hello\n");
  EXPECT_EQ(read_file(run.file("note.txt")), "hello\n");
  EXPECT_FALSE(fs::exists(run.file("note.txt.part")));
}

TEST_F(ReportFiles, ARunFolderIsNeverReused) {
  EXPECT_THAT(error_of([&] { RunFolder run(folder()); }),
              AllOf(HasSubstr(folder().string()), HasSubstr("exists")));
}

TEST_F(ReportFiles, AFolderThatHasGoneIsMadeAgain) {
  const RunFolder run(folder() / "run");
  fs::remove(folder() / "run");
  run.write("note.txt", "hello");
  EXPECT_EQ(read_file(run.file("note.txt")), "hello");
}

TEST_F(ReportFiles, ARunFolderHasOneProcessAtATime) {
  EXPECT_THAT(error_of([&] { return RunFolder::existing(folder() / "run"); }),
              HasSubstr("no such folder"));
  {
    const RunFolder run(folder() / "run");
    EXPECT_THAT(error_of([&] { return RunFolder::existing(folder() / "run"); }),
                HasSubstr("another process works in this run folder"));
  }
  EXPECT_EQ(error_of([&] { return RunFolder::existing(folder() / "run"); }), "no error");
}

// The threads of a process that was killed hold it for a moment longer.
TEST_F(ReportFiles, ARunFolderIsWaitedFor) {
  std::optional<RunFolder> before(std::in_place, folder() / "run");
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    before.reset();
  });
  EXPECT_EQ(
      error_of([&] { return RunFolder::existing(folder() / "run", std::chrono::minutes(1)); }),
      "no error");
  ends.join();
}

// The same command twice at once: one process has the folder, and the other waits for it.
TEST_F(ReportFiles, ARunFolderIsMadeByOneOfSeveral) {
  using namespace std::chrono_literals;
  const fs::path path = folder() / "a" / "b";
  int told = 0;
  std::optional<RunFolder> first = RunFolder::existing_or_new(path, 0ms);
  EXPECT_TRUE(first->is_new());
  const auto second = [&](std::chrono::milliseconds patience) {
    return error_of([&] {
      const RunFolder other = RunFolder::existing_or_new(path, patience, [&] { ++told; });
      EXPECT_FALSE(other.is_new());
    });
  };
  EXPECT_THAT(second(0ms), HasSubstr("another process works in this run folder"));
  EXPECT_EQ(told, 0);
  EXPECT_THAT(second(1100ms), HasSubstr("another process works in this run folder"));
  EXPECT_EQ(told, 1);
  first->write("config.toml", "");
  first.reset();
  EXPECT_EQ(second(0ms), "no error");
  // One in which nothing was written goes again, also while another process waits for it.
  fs::remove(path / "config.toml");
  first.emplace(RunFolder::existing_or_new(path, 0ms));
  std::thread waiting([&] { EXPECT_TRUE(RunFolder::existing_or_new(path, 10s).is_new()); });
  std::this_thread::sleep_for(50ms);
  first.reset();
  waiting.join();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ReportFiles, ARunFolderThatIsMovedKeepsItsLock) {
  std::optional<RunFolder> kept;
  {
    RunFolder run(folder() / "run");
    kept.emplace(std::move(run));
  }
  const auto another = [&] {
    return error_of([&] { return RunFolder::existing(folder() / "run"); });
  };
  EXPECT_THAT(another(), HasSubstr("another process works in this run folder"));
  kept.reset();
  EXPECT_EQ(another(), "no error");
}

TEST_F(ReportFiles, AFileThatCannotBeWrittenIsAnError) {
  const RunFolder run(folder() / "run");
  fs::create_directory(run.file("note.txt"));
  EXPECT_THAT(error_of([&] { run.write("note.txt", "hello"); }),
              HasSubstr("note.txt: cannot write"));
  fs::remove_all(folder() / "run");
  EXPECT_THAT(error_of([&] { MetricsWriter metrics(run.file("metrics.jsonl")); }),
              HasSubstr("metrics.jsonl: cannot write"));
}

TEST_F(ReportFiles, AFullDiskIsAnErrorAndNotSilence) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  MetricsWriter metrics("/dev/full");
  EXPECT_THAT(error_of([&] { metrics.on_step(no_training, step_record()); }),
              HasSubstr("No space left"));
}

TEST_F(ReportFiles, MetricsHaveALineForEachMinibatchThatIsLogged) {
  MetricsWriter metrics(folder() / "metrics.jsonl");
  StepRecord step = step_record();
  step.loss_scale = 1024;
  step.skipped = true;
  step.minibatches = {{.minibatch = MinibatchIndex{5},
                       .core = CoreRank{2},
                       .substep = 1,
                       .loss = 0.5,
                       .gradient_norm = 2},
                      {.minibatch = MinibatchIndex{6},
                       .core = CoreRank{0},
                       .substep = 0,
                       .loss = 0.25,
                       .gradient_norm = std::numeric_limits<double>::infinity()}};
  metrics.on_step(no_training, step);
  std::istringstream lines(read_file(folder() / "metrics.jsonl"));
  std::string text;
  std::getline(lines, text);
  test::expect_fields(json::parse(text), R"({"kind": "minibatch", "step": 7, "minibatch": 5,
      "core": 2, "substep": 1, "loss": 0.5, "gradient_norm": 2.0})");
  std::getline(lines, text);
  test::expect_fields(json::parse(text), R"({"kind": "minibatch", "step": 7, "minibatch": 6,
      "core": 0, "substep": 0, "loss": 0.25, "gradient_norm": null})");
  std::getline(lines, text);
  EXPECT_EQ(json::parse(text)["kind"], "step");
  EXPECT_EQ(json::parse(text)["loss_scale"], 1024);
  EXPECT_EQ(json::parse(text)["skipped"], true);
}

TEST_F(ReportFiles, SubstepsFollowTheAssignmentAndLeaveOutIdleCores) {
  MetricsWriter metrics(folder() / "metrics.jsonl");
  auto step = step_record();
  step.plan.cores = 7;
  step.assignment = Assignment::strided;
  metrics.on_step(no_training, step);
  const auto line = json::parse(read_file(folder() / "metrics.jsonl"));
  EXPECT_EQ(line["substeps"], json({1, 1, 1, 1, 1}));
}

TEST_F(ReportFiles, ALossThatIsNoNumberKeepsTheLineReadable) {
  MetricsWriter metrics(folder() / "metrics.jsonl");
  auto step = step_record();
  step.loss = std::numeric_limits<double>::quiet_NaN();
  metrics.on_step(no_training, step);
  EXPECT_TRUE(json::parse(read_file(folder() / "metrics.jsonl"))["loss"].is_null());
}

// Before the program was started again for better ones.
TEST(Summary, SaysWhichKernelsOpenblasTookByItself) {
  RunSummary summary;
  summary.engine.kernels = {{"OpenBLAS", "SkylakeX"}};
  EXPECT_EQ(json::parse(to_json(summary))["kernels"]["openblas_by_itself"], "SkylakeX");
  summary.kernel_start = KernelStart{.kernels = Kernels::native, .openblas_before = "Prescott"};
  EXPECT_EQ(json::parse(to_json(summary))["kernels"]["openblas_by_itself"], "Prescott");
}

TEST_F(ReportFiles, MetricsHaveWhatTheProgramMeasuresItself) {
  MetricsWriter metrics(folder() / "metrics.jsonl");
  const std::vector<MetricValue> values{{.name = "f1", .value = 0.5}, {.name = "size", .value = 3}};
  metrics.write({.of = "step", .index = 7, .learning_rate = 0.25, .values = values});
  metrics.write({.of = "epoch", .index = 2, .values = std::span(values).first(1)});
  std::istringstream lines(read_file(folder() / "metrics.jsonl"));
  for (const char* const expected :
       {R"({"kind": "own", "step": 7, "lr": 0.25, "metrics": {"f1": 0.5, "size": 3.0}})",
        R"({"kind": "own", "epoch": 2, "metrics": {"f1": 0.5}})"}) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(json::parse(line), json::parse(expected));
  }
}

// Whoever vouches for them has them on the disk.
TEST_F(ReportFiles, MetricsAreOnTheDiskBeforeTheirDigestIsKnown) {
  test::FileCalls calls(folder());
  MetricsWriter metrics(calls.folder() / "metrics.jsonl");
  metrics.on_step(no_training, step_record());
  calls.clear();
  EXPECT_EQ(metrics.sha256(), Sha256::hex_of(read_file(folder() / "metrics.jsonl")));
  EXPECT_THAT(calls.log(), Contains("fsync metrics.jsonl"));
}

TEST(Summary, SaysHowLongTheClockRanForWhat) {
  RunSummary summary;
  summary.result.time = ClockTime{.seconds = 36'000,
                                  .core_seconds = 14'400,
                                  .money = 2.5,
                                  .idle_seconds = 3600,
                                  .lost_seconds = 7200,
                                  .restart_seconds = 1800,
                                  .join_seconds = 360,
                                  .redone_seconds = 720,
                                  .checkpoint_seconds = 900,
                                  .restarts = 3};
  EXPECT_EQ(json::parse(to_json(summary)).at("clock"),
            json::parse(R"({"hours": 10.0, "core_hours": 4.0, "money": 2.5, "idle_hours": 1.0,
                            "lost_hours": 2.0, "restart_hours": 0.5, "join_hours": 0.1,
                            "redone_hours": 0.2, "checkpoint_hours": 0.25, "restarts": 3})"));
}

}  // namespace
}  // namespace rubato
