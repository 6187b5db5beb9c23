#include "runs/experiment/conduct/run_result.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "base/state/sha256.hpp"
#include "experiment/run_folders.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::write_run;

constexpr Measure kAccuracy{.is_accuracy = true, .chance = 0.1};
constexpr Measure kLoss{.is_accuracy = false};

class RunResults : public testing::Test {
 protected:
  // The result of a run with such test accuracies.
  [[nodiscard]] RunResult result_of(const std::vector<double>& accuracies,
                                    const std::string& more_metrics = {},
                                    const nlohmann::json& more_of_summary = {}) const {
    return read_result(write_run(folder_, "run", accuracies, more_metrics, more_of_summary),
                       kAccuracy);
  }

  const test::TempFolder folder_;
};

TEST_F(RunResults, SayWhatARunCameTo) {
  const RunResult result = result_of({0.5, 0.9, 0.8});
  EXPECT_EQ(result.end, ResultEnd::finished);
  EXPECT_EQ(result.final_value, 0.8);
  EXPECT_EQ(result.best_value, 0.9);
  EXPECT_EQ(result.epochs, 3);
  EXPECT_EQ(result.last.steps, 30);
  EXPECT_EQ(result.iterations, 37.5);
  EXPECT_EQ(result.wall_seconds, 2);
  ASSERT_EQ(result.curve.size(), 3U);
  EXPECT_EQ(result.curve[1].point.samples, 2000);
  EXPECT_EQ(result.curve[1].point.hours, 2.5);
  EXPECT_EQ(result.curve[1].point.samples_per_hour(), 800);
  EXPECT_EQ(result.curve[1].point.samples_per_core_hour(), 250);
  EXPECT_EQ(RunPoint{}.samples_per_hour(), std::nullopt);
}

TEST_F(RunResults, SayWhereATargetWasReached) {
  const auto run = write_run(folder_, "run", {0.5, 0.9, 0.95});
  const RunResult result = read_result(run, kAccuracy);
  const auto point = reached(result, kAccuracy, 0.9);
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->steps, 20);
  EXPECT_EQ(point->hours, 2.5);
  EXPECT_EQ(point->money, 4);
  EXPECT_FALSE(reached(result, kAccuracy, 0.96).has_value());
  // A loss has to be as small.
  EXPECT_EQ(reached(read_result(run, kLoss), kLoss, 0.06)->steps, 30);
  EXPECT_FALSE(reached(read_result(run, kLoss), kLoss, 0.01).has_value());
}

TEST_F(RunResults, KnowRunsThatNeverLearned) {
  // The largest class has a tenth: an epoch at 11.9 % has learned nothing, and one at 12.1 % has.
  EXPECT_EQ(result_of({0.1, 0.119, 0.1}).end, ResultEnd::never_learned);
  EXPECT_EQ(result_of({0.1, 0.121, 0.1}).end, ResultEnd::unlearned);
  // To exceed it is more than to come to it.
  const double border = kAccuracy.chance + kLearned;
  EXPECT_EQ(result_of({border, border}).end, ResultEnd::never_learned);
  EXPECT_EQ(result_of({0.9, border}).end, ResultEnd::unlearned);
  EXPECT_EQ(result_of({0.1, 0.1, 0.121}).end, ResultEnd::finished);
  const Measure skewed{.is_accuracy = true, .chance = 0.9};
  EXPECT_EQ(read_result(write_run(folder_, "d", {0.5, 0.9}), skewed).end, ResultEnd::never_learned);
  // Their numbers are finite, and count.
  EXPECT_EQ(result_of({0.1, 0.119, 0.1}).final_value, 0.1);
}

TEST_F(RunResults, KnowRunsThatDiverged) {
  const nlohmann::json why{{"stopped", "the loss became NaN"}};
  const RunResult step =
      result_of({0.5}, "{\"kind\":\"step\",\"step\":9,\"applied\":false}\n", why);
  EXPECT_EQ(step.end, ResultEnd::diverged);
  EXPECT_EQ(step.reason, "the loss became NaN");
  EXPECT_FALSE(step.has_value());
  EXPECT_EQ(step.best_value, 0.5);
  const RunResult test =
      result_of({0.5}, "{\"kind\":\"epoch\",\"epoch\":1,\"steps\":3,\"test_loss\":null}\n", why);
  EXPECT_EQ(test.end, ResultEnd::diverged);
}

// However well it did on what it had: it is no result of the training that was asked for.
TEST_F(RunResults, KnowRunsThatRanOutOfDevices) {
  const RunResult result = result_of({0.5, 0.9}, "", {{"stopped", "out of devices"}});
  EXPECT_EQ(result.end, ResultEnd::out_of_devices);
  EXPECT_EQ(name_of(result.end), "out of devices");
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(result.best_value, 0.9);
  // Every other end is what its numbers say.
  EXPECT_EQ(result_of({0.9}, "", {{"stopped", "3 hours reached"}}).end, ResultEnd::finished);
}

TEST_F(RunResults, TakeStepsThatWereSkippedForWhatTheyAre) {
  const RunResult result =
      result_of({0.5}, "{\"kind\":\"step\",\"step\":9,\"applied\":false,\"skipped\":true}\n");
  EXPECT_EQ(result.end, ResultEnd::finished);
}

TEST_F(RunResults, KnowRunsWithoutAnEvaluation) {
  const RunResult result = result_of({});
  EXPECT_EQ(result.end, ResultEnd::failed);
  EXPECT_THAT(result.reason, HasSubstr("before its first evaluation"));
}

TEST_F(RunResults, AreNotMadeOfOtherFiles) {
  folder_.write("a/summary.json", "{\"epochs\": \"1\"}");
  EXPECT_THAT(error_of([&] { return read_result(folder_.path() / "a", kAccuracy); }),
              HasSubstr("a/summary.json: not a summary of a run (epochs is \"1\")"));
}

// {"metrics_sha256": the digest of what write_run() has written}.
nlohmann::json digest_of(const std::filesystem::path& run) {
  return {{"metrics_sha256", Sha256::hex_of_file(run / "metrics.jsonl")}};
}

TEST_F(RunResults, AreNotMadeOfMetricsThatSomebodyHasChanged) {
  const nlohmann::json digest = digest_of(write_run(folder_, "a", {0.5, 0.9}));
  const auto run = write_run(folder_, "a", {0.5, 0.9}, {}, digest);
  EXPECT_EQ(read_result(run, kAccuracy).end, ResultEnd::finished);
  const std::string metrics = test::read_file(run / "metrics.jsonl");
  for (const std::string& damaged :
       {std::string(), metrics.substr(0, metrics.size() / 2), metrics + "{}\n"}) {
    folder_.write("a/metrics.jsonl", damaged);
    EXPECT_THAT(error_of([&] { return read_result(run, kAccuracy); }),
                HasSubstr("a/metrics.jsonl: has changed since the run ended"));
  }
  std::filesystem::remove(run / "metrics.jsonl");
  EXPECT_THAT(error_of([&] { return read_result(run, kAccuracy); }),
              HasSubstr("a/metrics.jsonl: No such file"));
}

// Those of older programs have no digest.
TEST_F(RunResults, WithoutADigestAreBelieved) {
  const auto run = write_run(folder_, "a", {0.5, 0.9});
  folder_.write("a/metrics.jsonl", "");
  EXPECT_EQ(read_result(run, kAccuracy).end, ResultEnd::never_learned);
}

std::string step_line(int batch, int cores) {
  return fmt::format(
      "{{\"kind\":\"step\",\"step\":0,\"epoch\":0,\"batch\":{},\"cores\":{},\"loss\":1}}\n", batch,
      cores);
}

TEST_F(RunResults, SayHowElasticTheStepsWere) {
  const std::string epoch = "{\"kind\":\"epoch\",\"epoch\":1,\"steps\":1,\"samples\":1}\n";
  const auto elasticity_of = [&](const std::string& metrics) {
    return result_of({0.5}, metrics).elasticity;
  };
  EXPECT_FALSE(elasticity_of("").has_value());
  // The last step of an epoch has what is left of it.
  const std::string rest = step_line(128, 2) + step_line(128, 2) + step_line(32, 2) + epoch;
  EXPECT_EQ(elasticity_of(rest + rest), (Elasticity{1, 128, 128, 2, 2}));
  EXPECT_TRUE(elasticity_of(rest)->is_constant());
  EXPECT_EQ(elasticity_of(step_line(128, 2) + step_line(64, 3) + step_line(256, 2) + rest),
            (Elasticity{3, 64, 256, 2, 3}));
  // As are epochs of one step.
  EXPECT_EQ(elasticity_of(step_line(96, 2) + epoch + step_line(64, 2) + epoch)->batch_sizes, 2);
}

TEST_F(RunResults, OfFailuresAreTheirWords) {
  const RunResult result = read_failure(folder_.write("a.failed", "rubato train: no\nmore\n"));
  EXPECT_EQ(result.end, ResultEnd::failed);
  EXPECT_EQ(result.reason, "rubato train: no\nmore");
}

}  // namespace
}  // namespace rubato
