// --tensorboard: what a run leaves for TensorBoard, and that a run that goes on does not contradict
// itself.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "runs/run/run_description.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "tensorboard/event_reader.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::Curves;
using test::curves_of;
using test::read_folder;
using test::ReadEvent;
using testing::HasSubstr;

// 3 epochs of 8 steps.
RunConfiguration watched_run() {
  return {.model = "quadratic:dim=5,samples=512",
          .trace = "64",
          .cores = 3,
          .epochs = 3,
          .threads = 2,
          .checkpoint_every = "5steps",
          .tensorboard = true};
}

void execute_run(const RunConfiguration& configuration, RunLocation location) {
  rubato::Run run(configuration, dense_workload(configuration), std::move(location));
  ASSERT_EQ(run.execute().end, RunEnd::completed);
}

std::vector<std::int64_t> end_statuses(const std::vector<ReadEvent>& events) {
  std::vector<std::int64_t> statuses;
  for (const ReadEvent& event : events) {
    if (event.hparams && event.hparams->end_status) statuses.push_back(*event.hparams->end_status);
  }
  return statuses;
}

TEST(TensorBoardOfARun, IsWrittenWhereItIsAskedFor) {
  const test::TempFolder temp;
  RunConfiguration configuration = watched_run();
  configuration.histograms = "*";
  configuration.histograms_every = 10;
  execute_run(configuration, RunLocation::create(temp.path() / "with"));
  const std::vector<ReadEvent> events = read_folder(temp.path() / "with");
  const Curves curves = curves_of(events);
  EXPECT_EQ(curves.at("train/loss").size(), 24U);
  EXPECT_EQ(curves.at("epoch/train_loss").back().first, 23);
  std::vector<std::int64_t> steps;
  for (const ReadEvent& event : events) {
    if (!event.histograms.empty()) steps.push_back(event.step);
  }
  EXPECT_THAT(steps, testing::ElementsAre(0, 0, 10, 10, 20, 20)) << "of weights and gradients";
  EXPECT_EQ(end_statuses(events), std::vector<std::int64_t>{1});

  configuration.tensorboard = false;
  execute_run(configuration, RunLocation::create(temp.path() / "without"));
  EXPECT_TRUE(test::event_files(temp.path() / "without").empty());
}

TEST(TensorBoardOfARun, IsRefusedWhereNoParameterMatches) {
  const test::TempFolder temp;
  RunConfiguration configuration = watched_run();
  configuration.histograms = "conv*";
  const auto workload = dense_workload(configuration);
  EXPECT_THAT(test::error_of([&] {
                rubato::Run(configuration, workload, RunLocation::create(temp.path() / "run"));
              }),
              testing::StartsWith("--histograms: no parameter matches 'conv*'"));
  EXPECT_FALSE(fs::exists(temp.path() / "run"));
}

// From every checkpoint, also from one before the end; each step is there once.
TEST(TensorBoardOfARun, GoesOnWithTheRun) {
  const test::TempFolder temp;
  const fs::path folder = temp.path() / "run";
  RunConfiguration configuration = watched_run();
  execute_run(configuration, RunLocation::create(folder));
  const Curves whole = curves_of(read_folder(folder));
  execute_run(configuration, RunLocation::resume(folder, configuration,
                                                 folder / "checkpoints/step-15.safetensors"));
  const std::vector<ReadEvent> events = read_folder(folder);
  const Curves curves = curves_of(events);
  EXPECT_EQ(curves.at("train/loss"), whole.at("train/loss"));
  EXPECT_EQ(curves.at("epoch/train_loss"), whole.at("epoch/train_loss"));
  EXPECT_EQ(end_statuses(events), std::vector<std::int64_t>{1}) << "the first end is void";
  // What the finished run had is kept with the rest of it.
  EXPECT_EQ(curves_of(read_folder(folder / "newer-than-step-15")).at("train/loss"),
            whole.at("train/loss"));

  // For more epochs.
  configuration.epochs = 4;
  execute_run(configuration, RunLocation::resume(folder, configuration));
  const Curves longer = curves_of(read_folder(folder));
  ASSERT_EQ(longer.at("train/loss").size(), 32U);
  for (std::int64_t step = 0; step < 32; ++step) {
    EXPECT_EQ(longer.at("train/loss")[static_cast<std::size_t>(step)].first, step);
  }
  EXPECT_EQ(end_statuses(read_folder(folder)), std::vector<std::int64_t>{1});
}

// Switched off and on again between processes.
TEST(TensorBoardOfARun, MayBeChangedByAResume) {
  const test::TempFolder temp;
  const fs::path folder = temp.path() / "run";
  RunConfiguration configuration = watched_run();
  for (const bool with : {true, false, true}) {
    configuration.tensorboard = with;
    const bool is_first = !fs::exists(folder);
    execute_run(configuration, is_first ? RunLocation::create(folder)
                                        : RunLocation::resume(folder, configuration));
    ++configuration.epochs;
  }
  std::vector<std::int64_t> steps;
  const Curves curves = curves_of(read_folder(folder));
  for (const auto& [step, loss] : curves.at("train/loss")) steps.push_back(step);
  std::vector<std::int64_t> expected;
  for (std::int64_t step = 0; step < 40; ++step) {
    if (step < 24 || step >= 32) expected.push_back(step);
  }
  EXPECT_EQ(steps, expected);
}

TEST(TensorBoardOfARun, SaysThatItDiverged) {
  const test::TempFolder temp;
  RunConfiguration configuration = watched_run();
  configuration.learning_rate = 1e30;
  rubato::Run run(configuration, dense_workload(configuration),
                  RunLocation::create(temp.path() / "run"));
  ASSERT_EQ(run.execute().end, RunEnd::diverged);
  EXPECT_EQ(end_statuses(read_folder(temp.path() / "run")), std::vector<std::int64_t>{2});
}

TEST(TensorBoardOfARun, HasTheClockOfTheCluster) {
  const test::TempFolder temp;
  RunConfiguration configuration = watched_run();
  configuration.clock = Clock::modelled;
  configuration.cluster = "substep=36";
  configuration.price = 2;
  rubato::Run run(configuration, dense_workload(configuration),
                  RunLocation::create(temp.path() / "run"));
  const RunOutcome outcome = run.execute();
  const Curves curves = curves_of(read_folder(temp.path() / "run"));
  ASSERT_TRUE(outcome.summary && outcome.summary->result.time);
  EXPECT_GT(curves.at("clock/hours").back().second, 0);
  EXPECT_EQ(curves.at("clock/hours").back().second,
            static_cast<float>(outcome.summary->result.time->seconds / 3600));
  EXPECT_EQ(curves.at("clock/money").back().second,
            static_cast<float>(outcome.summary->result.time->money));
}

// A full disk ends the run with an error, as it does for the metrics.
TEST(TensorBoardOfARun, CannotGoMissing) {
  const test::TempFolder temp;
  const fs::path folder = temp.path() / "run";
  const RunConfiguration configuration = watched_run();
  rubato::Run run(configuration, dense_workload(configuration), RunLocation::create(folder));
  ASSERT_EQ(test::event_files(folder).size(), 1U);
  fs::remove(test::event_files(folder).front());
  EXPECT_THAT(test::error_of([&] { run.execute(); }),
              HasSubstr("has gone while it was written to"));
}

TEST(Hyperparameters, AreTheOptionsThatTheResultDependsOn) {
  RunConfiguration configuration = watched_run();
  configuration.data = "mnist:/somewhere/images/";
  configuration.trace = "/somewhere/spot.csv";
  configuration.nesterov = true;
  configuration.learning_rate = 0.25;
  configuration.seed = 7;
  std::map<std::string, std::variant<bool, double, std::string>> values;
  for (const Hyperparameter& each : hyperparameters_of(configuration)) {
    values[each.name] = each.value;
  }
  using std::string;
  EXPECT_EQ(std::get<string>(values.at("data")), "mnist:images");
  EXPECT_EQ(std::get<string>(values.at("trace")), "spot.csv");
  EXPECT_EQ(std::get<string>(values.at("rule")), "linear");
  EXPECT_EQ(std::get<bool>(values.at("nesterov")), true);
  EXPECT_EQ(std::get<double>(values.at("lr")), 0.25);
  EXPECT_EQ(std::get<double>(values.at("seed")), 7);
  EXPECT_EQ(std::get<double>(values.at("cores")), 3);
  for (const char* name : {"threads", "tensorboard", "keep", "momentum", "clip-norm", "cluster"}) {
    EXPECT_FALSE(values.contains(name)) << name << " changes no bit, or is not set";
  }
  EXPECT_EQ(hyperparameter_column("trace").type, HyperparameterType::text);
  EXPECT_EQ(hyperparameter_column("nesterov").type, HyperparameterType::flag);
  EXPECT_EQ(hyperparameter_column("seed").type, HyperparameterType::number);
  EXPECT_EQ(hyperparameter_column("lr").type, HyperparameterType::number);
}

}  // namespace
}  // namespace rubato
