// Runs whose batch sizes are decided on the way: what --batch makes, what it refuses, what it logs.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "run/runs.hpp"
#include "runs/config/chosen_parts.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

RunConfiguration adaptive_run(const std::string& batch, Clock clock) {
  return {.model = "quadratic:dim=5,samples=2048",
          .trace = "64",
          .cores = 3,
          .minibatch = 8,
          .clock = clock,
          .cluster = clock == Clock::real ? "" : "substep=0.1,bytes=1000,latency=0.3",
          .batch = batch,
          .rule = "adascale",
          .reference_batch = 32,
          .epochs = 3,
          .threads = 2,
          .checkpoint_every = "5steps"};
}

struct AdaptiveRun {
  std::string batch;
  Clock clock;

  friend std::ostream& operator<<(std::ostream& out, const AdaptiveRun& run) {
    return out << run.batch << (run.clock == Clock::real ? " in real" : " in modelled") << " time";
  }
};

class BatchPolicyOfRun : public testing::TestWithParam<AdaptiveRun> {};

TEST_P(BatchPolicyOfRun, DecidesAndSaysWhy) {
  const test::TempFolder temp;
  const fs::path folder = temp.path() / "run";
  const RunConfiguration configuration = adaptive_run(GetParam().batch, GetParam().clock);
  ASSERT_EQ(test::outcome_of(configuration, RunLocation::create(folder)).end, RunEnd::completed);
  std::istringstream lines(read_file(folder / "metrics.jsonl"));
  std::set<std::int64_t> batches;
  int explained = 0;
  for (std::string text; std::getline(lines, text);) {
    const auto line = nlohmann::json::parse(text);
    if (line["kind"] != "step") continue;
    batches.insert(line["batch"].get<std::int64_t>());
    if (!line.contains("decision")) continue;
    EXPECT_LE(line["decision"].value("noise_scale", 0.0), 1e12);
    ++explained;
  }
  EXPECT_GT(batches.size(), 2U) << "it decides something";
  EXPECT_LE(*batches.rbegin(), 512);
  EXPECT_GT(explained, 10);
}

TEST_P(BatchPolicyOfRun, GoesOnToTheSameBits) {
  const RunConfiguration configuration = adaptive_run(GetParam().batch, GetParam().clock);
  const std::string expected = test::outcome_of(configuration).summary.value().weights_sha256;

  const test::TempFolder temp;
  const fs::path folder = temp.path() / "run";
  {
    rubato::Run first(configuration, dense_workload(configuration), RunLocation::create(folder));
    first.trainer().add_observer<test::PauseAfter>(11);
    ASSERT_EQ(first.execute().end, RunEnd::paused);
    first.write_checkpoint();
  }
  RunConfiguration others = configuration;
  others.threads = 1;
  if (others.clock == Clock::real) others.cores = 7;
  rubato::Run second(others, dense_workload(others), RunLocation::resume(folder, others));
  EXPECT_EQ(second.trainer().result().steps, 11);
  EXPECT_EQ(second.execute().summary.value().weights_sha256, expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, BatchPolicyOfRun,
    testing::Values(AdaptiveRun{"noise-scale:max=512,wait=3", Clock::real},
                    AdaptiveRun{"noise-scale:max=512,wait=3", Clock::modelled},
                    AdaptiveRun{"goodput:max=512", Clock::modelled},
                    AdaptiveRun{"ramp:from=8,to=512,samples=2000", Clock::real},
                    AdaptiveRun{"ramp:from=8,to=512,samples=2000,stages=3", Clock::modelled}));

// docs/policies.md: where another schedule halves the rate, the batch doubles and the rate is
// divided by sqrt 2, by the schedule or by the rule.
TEST(BatchPolicyOfRuns, DoublesTheBatchWhereTheScheduleDecays) {
  const test::TempFolder temp;
  for (const auto& [rule, gamma] :
       {std::pair("constant", "0.7071067811865476"), std::pair("root", "0.5")}) {
    RunConfiguration run = adaptive_run("ramp:from=16,to=64,samples=1000,stages=2", Clock::real);
    run.rule = rule;
    run.learning_rate = 0.25;
    run.reference_batch = 16;
    run.schedule = fmt::format("multi-step:at=500/1000,gamma={}", gamma);
    run.schedule_unit = ScheduleUnit::samples;
    const fs::path folder = temp.path() / rule;
    ASSERT_EQ(test::outcome_of(run, RunLocation::create(folder)).end, RunEnd::completed);
    std::istringstream lines(read_file(folder / "metrics.jsonl"));
    std::int64_t samples = 0;
    for (std::string text; std::getline(lines, text);) {
      const auto line = nlohmann::json::parse(text);
      if (line["kind"] != "step") continue;
      const std::int64_t stage = std::min<std::int64_t>(samples / 500, 2);
      EXPECT_EQ(line["batch"], 16 << stage) << samples;
      EXPECT_NEAR(line["lr"].get<double>(), 0.25 * std::pow(0.5, 0.5 * static_cast<double>(stage)),
                  1e-12)
          << samples;
      samples += line["batch"].get<std::int64_t>();
    }
    EXPECT_GT(samples, 2000) << rule;
  }
}

TEST(BatchPolicyOfRuns, RefusesWhatCannotWork) {
  const auto error = [](const RunConfiguration& configuration) {
    return error_of([&] {
      require_valid(configuration);
      rubato::Run(configuration, dense_workload(configuration));
    });
  };
  EXPECT_EQ(error(adaptive_run("goodput:max=512", Clock::real)),
            "--batch goodput:max=512: the result would depend on the speed of this machine; "
            "accepted: with --clock virtual");
  EXPECT_THAT(error(adaptive_run("goodput:max=24", Clock::modelled)),
              HasSubstr("max: 24 is below the min that is not given, 32 (--ref-batch)"));
  EXPECT_THAT(error(adaptive_run("noise-scale:max=4096", Clock::real)),
              HasSubstr("a batch of 4096 samples is larger than an epoch (2048); accepted: batches "
                        "of at most 2048, or more with --remainder carry"));
  RunConfiguration carried = adaptive_run("noise-scale:max=4096", Clock::real);
  carried.remainder = Remainder::carry;
  EXPECT_EQ(error(carried), "no error");
  EXPECT_EQ(batch_policy_of(adaptive_run("fixed", Clock::real)), nullptr);
}

// Steps of half the batch are more than the trace has.
TEST(BatchPolicyOfRuns, SaysThatATraceIsTooShort) {
  const test::TempFolder temp;
  std::string rows = "step,batchsize\n";
  for (int i = 0; i < 96; ++i) rows += std::to_string(i) + ",64\n";
  RunConfiguration configuration = adaptive_run("fixed", Clock::real);
  configuration.trace = temp.write("short.csv", rows).string();
  const auto error = [&] {
    return error_of([&] { rubato::Run(configuration, dense_workload(configuration)).execute(); });
  };
  EXPECT_EQ(error(), "no error") << "3 epochs of 32 steps";
  configuration.batch = "noise-scale:max=32";
  EXPECT_THAT(error(), HasSubstr("short.csv:98: the trace ends before this step, and there is more "
                                 "to train; accepted: a longer one, or --on-trace-end"));
  configuration.on_trace_end = TraceEnd::hold;
  EXPECT_EQ(error(), "no error");
}

}  // namespace
}  // namespace rubato
