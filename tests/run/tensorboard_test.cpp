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

#include "run/runs.hpp"
#include "runs/run/run_description.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"
#include "tensorboard/event_reader.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::Curves;
using test::curves_of;
using test::read_folder;
using test::ReadEvent;

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
  EXPECT_EQ(test::outcome_of(configuration, std::move(location)).end, RunEnd::completed);
}

std::vector<std::int64_t> end_statuses(const std::vector<ReadEvent>& events) {
  std::vector<std::int64_t> statuses;
  for (const ReadEvent& event : events) {
    if (event.hparams && event.hparams->end_status) statuses.push_back(*event.hparams->end_status);
  }
  return statuses;
}

class TensorBoardOfARun : public testing::Test {
 protected:
  const test::TempFolder temp_;
  const fs::path folder_ = temp_.path() / "run";
  RunConfiguration configuration_ = watched_run();
};

TEST_F(TensorBoardOfARun, IsWrittenWhereItIsAskedFor) {
  configuration_.histograms = "*";
  configuration_.histograms_every = 10;
  execute_run(configuration_, RunLocation::create(temp_.path() / "with"));
  const std::vector<ReadEvent> events = read_folder(temp_.path() / "with");
  const Curves curves = curves_of(events);
  EXPECT_EQ(curves.at("train/loss").size(), 24U);
  EXPECT_EQ(curves.at("epoch/train_loss").back().first, 23);
  std::vector<std::int64_t> steps;
  for (const ReadEvent& event : events) {
    if (!event.histograms.empty()) steps.push_back(event.step);
  }
  EXPECT_THAT(steps, ElementsAre(0, 0, 10, 10, 20, 20)) << "of weights and gradients";
  EXPECT_EQ(end_statuses(events), std::vector<std::int64_t>{1});

  configuration_.tensorboard = false;
  execute_run(configuration_, RunLocation::create(temp_.path() / "without"));
  EXPECT_TRUE(test::event_files(temp_.path() / "without").empty());
}

TEST_F(TensorBoardOfARun, IsRefusedWhereNoParameterMatches) {
  configuration_.histograms = "conv*";
  const auto workload = dense_workload(configuration_);
  EXPECT_THAT(
      error_of([&] { rubato::Run(configuration_, workload, RunLocation::create(folder_)); }),
      StartsWith("--histograms: no parameter matches 'conv*'"));
  EXPECT_FALSE(fs::exists(folder_));
}

// From every checkpoint, also from one before the end; each step is there once.
TEST_F(TensorBoardOfARun, GoesOnWithTheRun) {
  execute_run(configuration_, RunLocation::create(folder_));
  const Curves whole = curves_of(read_folder(folder_));
  execute_run(configuration_, RunLocation::resume(folder_, configuration_,
                                                  folder_ / "checkpoints/step-15.safetensors"));
  const std::vector<ReadEvent> events = read_folder(folder_);
  const Curves curves = curves_of(events);
  EXPECT_EQ(curves.at("train/loss"), whole.at("train/loss"));
  EXPECT_EQ(curves.at("epoch/train_loss"), whole.at("epoch/train_loss"));
  EXPECT_EQ(end_statuses(events), std::vector<std::int64_t>{1}) << "the first end is void";
  // What the finished run had is kept with the rest of it.
  EXPECT_EQ(curves_of(read_folder(folder_ / "newer-than-step-15")).at("train/loss"),
            whole.at("train/loss"));

  // For more epochs.
  configuration_.epochs = 4;
  execute_run(configuration_, RunLocation::resume(folder_, configuration_));
  const Curves longer = curves_of(read_folder(folder_));
  ASSERT_EQ(longer.at("train/loss").size(), 32U);
  for (std::int64_t step = 0; step < 32; ++step) {
    EXPECT_EQ(longer.at("train/loss")[static_cast<std::size_t>(step)].first, step);
  }
  EXPECT_EQ(end_statuses(read_folder(folder_)), std::vector<std::int64_t>{1});
}

// Switched off and on again between processes.
TEST_F(TensorBoardOfARun, MayBeChangedByAResume) {
  for (const bool with : {true, false, true}) {
    configuration_.tensorboard = with;
    const bool is_first = !fs::exists(folder_);
    execute_run(configuration_, is_first ? RunLocation::create(folder_)
                                         : RunLocation::resume(folder_, configuration_));
    ++configuration_.epochs;
  }
  std::vector<std::int64_t> steps;
  const Curves curves = curves_of(read_folder(folder_));
  for (const auto& [step, loss] : curves.at("train/loss")) steps.push_back(step);
  std::vector<std::int64_t> expected;
  for (std::int64_t step = 0; step < 40; ++step) {
    if (step < 24 || step >= 32) expected.push_back(step);
  }
  EXPECT_EQ(steps, expected);
}

TEST_F(TensorBoardOfARun, SaysThatItDiverged) {
  configuration_.learning_rate = 1e30;
  EXPECT_EQ(test::outcome_of(configuration_, RunLocation::create(folder_)).end, RunEnd::diverged);
  EXPECT_EQ(end_statuses(read_folder(folder_)), std::vector<std::int64_t>{2});
}

TEST_F(TensorBoardOfARun, HasTheClockOfTheCluster) {
  configuration_.clock = Clock::modelled;
  configuration_.cluster = "substep=36";
  configuration_.price = "2";
  const RunOutcome outcome = test::outcome_of(configuration_, RunLocation::create(folder_));
  const Curves curves = curves_of(read_folder(folder_));
  ASSERT_TRUE(outcome.summary && outcome.summary->result.time);
  EXPECT_GT(curves.at("clock/hours").back().second, 0);
  EXPECT_EQ(curves.at("clock/hours").back().second,
            static_cast<float>(outcome.summary->result.time->seconds / 3600));
  EXPECT_EQ(curves.at("clock/money").back().second,
            static_cast<float>(outcome.summary->result.time->money));
}

// A full disk ends the run with an error, as it does for the metrics.
TEST_F(TensorBoardOfARun, CannotGoMissing) {
  rubato::Run run(configuration_, dense_workload(configuration_), RunLocation::create(folder_));
  ASSERT_EQ(test::event_files(folder_).size(), 1U);
  fs::remove(test::event_files(folder_).front());
  EXPECT_THAT(error_of([&] { run.execute(); }), HasSubstr("has gone while it was written to"));
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
