// Runs in modelled time: what they are made of, what they leave, and how they go on.

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/modelled_time.hpp>

#include "base/core/file.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/run/workload/run_steps.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Devices come and go every few steps.
RunConfiguration in_modelled_time() {
  return {.model = "quadratic:dim=5,samples=512",
          .trace = "walk:start=4,high=6,move=3,every=40,hours=1,seed=3",
          .availability = "weak:samples-per-device=8",
          .on_trace_end = TraceEnd::cycle,
          .minibatch = 8,
          .clock = Clock::modelled,
          .cluster = "substep=10,restart=7,latency=0.5",
          .price = 2,
          .epochs = 3,
          .threads = 2,
          .checkpoint_every = "5steps"};
}

class PauseBehind final : public Observer {
 public:
  explicit PauseBehind(std::int64_t steps) : steps_(steps) {}
  void between_steps(Training& training) override {
    if (training.result().steps == steps_) training.pause();
  }

 private:
  std::int64_t steps_;
};

RunOutcome outcome_of(const RunConfiguration& configuration, RunLocation location = {}) {
  rubato::Run run(configuration, dense_workload(configuration), std::move(location));
  return run.execute();
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

// Devices for two steps of 64 samples, and none any more.
TEST(ModelledTime, IsAnEndWhereThereAreNoDevicesAnyMore) {
  const test::TempFolder temp;
  const fs::path folder = temp.path() / "run";
  RunConfiguration configuration = in_modelled_time();
  configuration.trace = temp.write("two.csv", "seconds,count\n0,8\n25,0\n90,\n").string();
  configuration.on_trace_end = TraceEnd::stop;
  configuration.cluster = "substep=10,bytes=0";
  const RunOutcome outcome = outcome_of(configuration, RunLocation::create(folder));
  EXPECT_EQ(outcome.end, RunEnd::out_of_devices);
  const auto summary = nlohmann::json::parse(read_file(folder / "summary.json"));
  EXPECT_EQ(summary.at("end"), "out_of_devices");
  EXPECT_EQ(summary.at("stopped"), "out of devices");
  EXPECT_EQ(summary.at("samples"), 128);
  EXPECT_EQ(summary.at("clock").at("hours"), 90.0 / 3600);
  EXPECT_EQ(summary.at("clock").at("lost_hours"), 5.0 / 3600);
  EXPECT_EQ(summary.at("clock").at("restart_hours"), 0);
  EXPECT_TRUE(fs::exists(folder / "checkpoints" / "step-2.safetensors"));
  // A budget that is reached before is none of that.
  configuration.hours = 80.0 / 3600;
  const RunOutcome reached = outcome_of(configuration);
  EXPECT_EQ(reached.end, RunEnd::completed);
  EXPECT_EQ(reached.summary->stopped, "0.0222222 hours of the clock reached");
  EXPECT_EQ(reached.summary->result.time->seconds, 80);
}

TEST(ModelledTime, IsThatOfTheSimulation) {
  RunConfiguration configuration = in_modelled_time();
  for (const char* trace :
       {"walk:start=4,high=6,move=3,every=40,hours=1,seed=3", "64", "elastic"}) {
    SCOPED_TRACE(trace);
    configuration.trace = trace;
    const bool devices = std::string(trace).starts_with("walk");
    configuration.availability = devices ? "weak:samples-per-device=8" : "";
    const RunOutcome trained = outcome_of(configuration);
    const SimulationResult expected = simulated(configuration, 512);
    ASSERT_TRUE(trained.summary->result.time);
    EXPECT_EQ(trained.summary->result.time, expected.time);
    EXPECT_EQ(trained.summary->result.steps, expected.steps);
    EXPECT_EQ(trained.summary->result.time->restarts > 0, devices);
    EXPECT_GT(trained.summary->result.time->money, 0);
  }
}

TEST(ModelledTime, ChangesWhatIsTrained) {
  RunConfiguration configuration = in_modelled_time();
  const RunOutcome slow = outcome_of(configuration);
  configuration.cluster = "substep=100";
  EXPECT_NE(outcome_of(configuration).summary->weights_sha256, slow.summary->weights_sha256);
  configuration = in_modelled_time();
  configuration.threads = 1;
  configuration.price = 9;
  EXPECT_EQ(outcome_of(configuration).summary->weights_sha256, slow.summary->weights_sha256);
}

TEST(ModelledTime, GoesOnAfterAPause) {
  const test::TempFolder temp;
  const RunOutcome whole = outcome_of(in_modelled_time());
  for (const std::int64_t steps : {1, 7, 20}) {
    SCOPED_TRACE(steps);
    const fs::path folder = temp.path() / std::to_string(steps);
    {
      rubato::Run run(in_modelled_time(), dense_workload(in_modelled_time()),
                      RunLocation::create(folder));
      run.trainer().add_observer<PauseBehind>(steps);
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

TEST(ModelledTime, GoesOnOnTheSameClusterAlone) {
  const test::TempFolder temp;
  const fs::path folder = temp.path() / "run";
  outcome_of(in_modelled_time(), RunLocation::create(folder));
  const auto error = [&](const auto& change) {
    RunConfiguration configuration = read_configuration(folder / "config.toml");
    configuration.epochs = 4;
    change(configuration);
    return test::error_of(
        [&] { outcome_of(configuration, RunLocation::resume(folder, configuration)); });
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
  EXPECT_EQ(error([](RunConfiguration& run) { run.price = 11; }), "no error");
}

TEST(ModelledTime, EndsABudget) {
  RunConfiguration configuration = in_modelled_time();
  configuration.hours = 0.05;
  const RunOutcome outcome = outcome_of(configuration);
  EXPECT_EQ(outcome.summary->stopped, "0.05 hours of the clock reached");
  EXPECT_GE(outcome.summary->result.time->seconds, 180);
  EXPECT_EQ(outcome.summary->result.time, simulated(configuration, 512).time);

  configuration.clock = Clock::real;
  EXPECT_THAT(test::error_of([&] { outcome_of(configuration); }),
              HasSubstr("a budget of hours 0.05 needs modelled time"));
}

TEST(ModelledTime, IsRefusedWhereDevicesGoBeforeItsEnd) {
  const test::TempFolder temp;
  RunConfiguration configuration = in_modelled_time();
  configuration.on_trace_end = TraceEnd::error;
  configuration.epochs = 200;
  EXPECT_THAT(
      test::error_of([&] { outcome_of(configuration, RunLocation::create(temp.path() / "run")); }),
      HasSubstr("the availability ends at 3600 s, and there is more to train"));
  EXPECT_FALSE(fs::exists(temp.path() / "run")) << "before there is a folder";
  configuration.on_trace_end = TraceEnd::stop;
  EXPECT_THAT(outcome_of(configuration).summary->stopped, "out of devices");
  configuration.on_trace_end = TraceEnd::error;
  configuration.hours = 0.5;
  EXPECT_EQ(outcome_of(configuration).summary->stopped, "0.5 hours of the clock reached");
}

TEST(ModelledTime, HasStragglersOfItsOwn) {
  RunConfiguration configuration = in_modelled_time();
  configuration.trace = "64";
  configuration.availability.clear();
  const double seconds = outcome_of(configuration).summary->result.time->seconds;
  configuration.straggler = "core=0,factor=2";
  const RunOutcome slow = outcome_of(configuration);
  // 24 steps of one minibatch for each of eight cores.
  EXPECT_NEAR(slow.summary->result.time->seconds, seconds + 24 * 10, 1e-9);
}

}  // namespace
}  // namespace rubato
