// Runs in modelled time: what they are made of, what they leave, and how they go on.

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/modelled_time.hpp>

#include "base/core/file.hpp"
#include "run/runs.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/run/workload/run_steps.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::outcome_of;

// Devices come and go every few steps.
RunConfiguration in_modelled_time() {
  return {.model = "quadratic:dim=5,samples=512",
          .trace = "walk:start=4,high=6,move=3,every=40,hours=1,seed=3",
          .availability = "weak:samples-per-device=8",
          .on_trace_end = TraceEnd::cycle,
          .minibatch = 8,
          .clock = Clock::modelled,
          .cluster = "substep=10,restart=7,latency=0.5",
          .price = "2",
          .epochs = 3,
          .threads = 2,
          .checkpoint_every = "5steps"};
}

SimulationResult simulated(const RunConfiguration& run, std::int64_t samples) {
  const std::int64_t bytes = 4 * run.model->parameters(run.model->options, {});
  const auto source = make_step_source(run, load_run_steps(run), bytes);
  return simulate(*source,
                  {.dataset_size = samples,
                   .minibatch_size = run.minibatch,
                   .cores = run.cores,
                   .remainder = run.remainder,
                   .epochs = run.epochs},
                  {}, budget_of(run));
}

class ModelledTime : public testing::Test {
 protected:
  const test::TempFolder temp_;
  const fs::path folder_ = temp_.path() / "run";
  RunConfiguration configuration_ = in_modelled_time();
};

// Devices for two steps of 64 samples, and none any more.
TEST_F(ModelledTime, IsAnEndWhereThereAreNoDevicesAnyMore) {
  configuration_.trace = temp_.write("two.csv", "seconds,count\n0,8\n25,0\n90,\n").string();
  configuration_.on_trace_end = TraceEnd::stop;
  configuration_.cluster = "substep=10,bytes=0";
  const RunOutcome outcome = outcome_of(configuration_, RunLocation::create(folder_));
  EXPECT_EQ(outcome.end, RunEnd::out_of_devices);
  const auto summary = nlohmann::json::parse(read_file(folder_ / "summary.json"));
  EXPECT_EQ(summary.at("end"), "out_of_devices");
  EXPECT_EQ(summary.at("stopped"), "out of devices");
  EXPECT_EQ(summary.at("samples"), 128);
  EXPECT_EQ(summary.at("clock").at("hours"), 90.0 / 3600);
  EXPECT_EQ(summary.at("clock").at("lost_hours"), 5.0 / 3600);
  EXPECT_EQ(summary.at("clock").at("restart_hours"), 0);
  EXPECT_TRUE(fs::exists(folder_ / "checkpoints" / "step-2.safetensors"));
  // A budget that is reached before is none of that.
  configuration_.hours = 80.0 / 3600;
  const RunOutcome reached = outcome_of(configuration_);
  EXPECT_EQ(reached.end, RunEnd::completed);
  EXPECT_EQ(reached.summary->stopped, "0.0222222 hours of the clock reached");
  EXPECT_EQ(reached.summary->result.time->seconds, 80);
}

TEST_F(ModelledTime, IsThatOfTheSimulation) {
  for (const char* trace :
       {"walk:start=4,high=6,move=3,every=40,hours=1,seed=3", "64", "elastic"}) {
    SCOPED_TRACE(trace);
    configuration_.trace = trace;
    const bool devices = std::string(trace).starts_with("walk");
    configuration_.availability = devices ? "weak:samples-per-device=8" : "";
    const RunOutcome trained = outcome_of(configuration_);
    const SimulationResult expected = simulated(configuration_, 512);
    ASSERT_TRUE(trained.summary->result.time);
    EXPECT_EQ(trained.summary->result.time, expected.time);
    EXPECT_EQ(trained.summary->result.steps, expected.steps);
    EXPECT_EQ(trained.summary->result.time->restarts > 0, devices);
    EXPECT_GT(trained.summary->result.time->money, 0);
  }
}

TEST_F(ModelledTime, CountsSquaresOfMinibatchesAsBytes) {
  configuration_.cluster = "substep=10";
  EXPECT_EQ(cluster_of(configuration_, 100).gradient_bytes, 100);
  configuration_.optimizer = "adam:second-moment=minibatch";
  EXPECT_EQ(cluster_of(configuration_, 100).gradient_bytes, 200);
  configuration_.cluster = "substep=10,bytes=70";
  EXPECT_EQ(cluster_of(configuration_, 100).gradient_bytes, 70);
}

TEST_F(ModelledTime, ChangesWhatIsTrained) {
  const RunOutcome slow = outcome_of(configuration_);
  configuration_.cluster = "substep=100";
  EXPECT_NE(outcome_of(configuration_).summary->weights_sha256, slow.summary->weights_sha256);
  configuration_ = in_modelled_time();
  configuration_.threads = 1;
  configuration_.price = "9";
  EXPECT_EQ(outcome_of(configuration_).summary->weights_sha256, slow.summary->weights_sha256);
}

TEST_F(ModelledTime, GoesOnAfterAPause) {
  const RunOutcome whole = outcome_of(in_modelled_time());
  for (const std::int64_t steps : {1, 7, 20}) {
    SCOPED_TRACE(steps);
    const fs::path folder = temp_.path() / std::to_string(steps);
    {
      rubato::Run run(in_modelled_time(), dense_workload(in_modelled_time()),
                      RunLocation::create(folder));
      run.trainer().add_observer<test::PauseAfter>(steps);
      ASSERT_EQ(run.execute().end, RunEnd::paused);
      run.write_checkpoint();
    }
    // Its folder says all of it.
    RunConfiguration configuration = read_configuration(folder / "config.toml");
    EXPECT_EQ(fs::path(configuration.trace.text()).filename(), "availability.csv");
    configuration.threads = 1;
    const RunOutcome rest = outcome_of(configuration, RunLocation::resume(folder, configuration));
    EXPECT_EQ(rest.summary->weights_sha256, whole.summary->weights_sha256);
    EXPECT_EQ(rest.summary->result.time, whole.summary->result.time);
    EXPECT_EQ(nlohmann::json::parse(read_file(folder / "summary.json")).at("clock").at("restarts"),
              whole.summary->result.time->restarts);
  }
}

// Between steps and at any moment training is in one of two zones, and on on-demand devices.
TEST_F(ModelledTime, GoesOnInItsZone) {
  configuration_.trace =
      "zone:a=spot:most=6,wait=0.01,life=0.05,hours=1,seed=3,"
      "b=spot:most=6,wait=0.01,life=0.05,hours=1,seed=4";
  configuration_.cluster =
      "substep=10,restart=7,join=20,zone-latency=5,egress=1e9,on-demand=2,on-demand-price=5";
  configuration_.market = "greedy";
  configuration_.deadline = 3;
  const RunOutcome whole = outcome_of(configuration_, RunLocation::create(folder_));
  const SimulationResult foreseen = simulated(configuration_, 512);
  EXPECT_EQ(whole.summary->result.time, foreseen.time);
  EXPECT_GT(foreseen.time->restarts, 0);
  for (const std::int64_t steps : {3, 12, 25}) {
    const fs::path folder = temp_.path() / std::to_string(steps);
    {
      rubato::Run run(configuration_, dense_workload(configuration_), RunLocation::create(folder));
      run.trainer().add_observer<test::PauseAfter>(steps);
      ASSERT_EQ(run.execute().end, RunEnd::paused);
      run.write_checkpoint();
    }
    const RunConfiguration configuration = read_configuration(folder / "config.toml");
    EXPECT_EQ(
        configuration.trace.text(),
        fmt::format("zone:a={0}/availability-a.csv,b={0}/availability-b.csv", folder.string()));
    const RunOutcome rest = outcome_of(configuration, RunLocation::resume(folder, configuration));
    EXPECT_EQ(rest.summary->weights_sha256, whole.summary->weights_sha256);
    EXPECT_EQ(rest.summary->result.time, whole.summary->result.time);
  }
  EXPECT_THAT(read_file(temp_.path() / "3" / "config.toml"),
              HasSubstr("\"zone:a=availability-a.csv,b=availability-b.csv\""));
}

TEST_F(ModelledTime, RefusesAMoveWithoutZones) {
  configuration_.cluster = "substep=10,egress=1";
  EXPECT_THAT(error_of([&] { simulated(configuration_, 512); }),
              HasSubstr("has one zone, and training moves nowhere; accepted: with several zones"));
}

TEST_F(ModelledTime, GoesOnOnTheSameClusterAlone) {
  outcome_of(in_modelled_time(), RunLocation::create(folder_));
  const auto error = [&](const auto& change) {
    RunConfiguration configuration = read_configuration(folder_ / "config.toml");
    configuration.epochs = 4;
    change(configuration);
    return error_of(
        [&] { outcome_of(configuration, RunLocation::resume(folder_, configuration)); });
  };
  EXPECT_THAT(error([](RunConfiguration& run) { run.cluster = "substep=11"; }),
              HasSubstr("--cluster was"));
  EXPECT_THAT(error([](RunConfiguration& run) { run.straggler = "core=0,factor=2"; }),
              HasSubstr("another cluster"));
  EXPECT_THAT(error([](RunConfiguration& run) { run.availability = "weak:samples-per-device=16"; }),
              HasSubstr("another cluster or policy"));
  EXPECT_THAT(error([](RunConfiguration& run) {
                run.trace = "walk:start=4,high=6,move=3,every=40,hours=1,seed=4";
              }),
              HasSubstr("the devices until"));
  EXPECT_EQ(error([](RunConfiguration& run) { run.price = "11"; }), "no error");
}

TEST_F(ModelledTime, EndsABudget) {
  configuration_.hours = 0.05;
  const RunOutcome outcome = outcome_of(configuration_);
  EXPECT_EQ(outcome.summary->stopped, "0.05 hours of the clock reached");
  EXPECT_GE(outcome.summary->result.time->seconds, 180);
  EXPECT_EQ(outcome.summary->result.time, simulated(configuration_, 512).time);

  configuration_.clock = Clock::real;
  EXPECT_THAT(error_of([&] { outcome_of(configuration_); }),
              HasSubstr("a budget of hours 0.05 needs modelled time"));
}

TEST_F(ModelledTime, IsRefusedWhereDevicesGoBeforeItsEnd) {
  configuration_.on_trace_end = TraceEnd::error;
  configuration_.epochs = 200;
  EXPECT_THAT(error_of([&] { outcome_of(configuration_, RunLocation::create(folder_)); }),
              HasSubstr("the availability ends at 3600 s, and there is more to train"));
  EXPECT_FALSE(fs::exists(folder_)) << "before there is a folder";
  configuration_.on_trace_end = TraceEnd::stop;
  EXPECT_THAT(outcome_of(configuration_).summary->stopped, "out of devices");
  configuration_.on_trace_end = TraceEnd::error;
  configuration_.hours = 0.5;
  EXPECT_EQ(outcome_of(configuration_).summary->stopped, "0.5 hours of the clock reached");
}

TEST_F(ModelledTime, HasStragglersOfItsOwn) {
  configuration_.trace = "64";
  configuration_.availability = {};
  const double seconds = outcome_of(configuration_).summary->result.time->seconds;
  configuration_.straggler = "core=0,factor=2";
  const RunOutcome slow = outcome_of(configuration_);
  // 24 steps of one minibatch for each of eight cores.
  EXPECT_NEAR(slow.summary->result.time->seconds, seconds + 24 * 10, 1e-9);
}

}  // namespace
}  // namespace rubato
