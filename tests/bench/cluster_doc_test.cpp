// docs/cluster.md: its examples are what the library says, its table has all arguments, and its
// benchmark runs.

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/base/spec.hpp>
#include <rubato/runs/calibration.hpp>
#include <rubato/steps/cluster_model.hpp>

#include "app/run_program.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

class ClusterDoc : public testing::Test {
 protected:
  // Whatever its lines are broken by.
  [[nodiscard]] std::string words() const { return std::regex_replace(text_, spaces_, " "); }

  std::string text_ = test::read_file(RUBATO_CLUSTER_MD);

 private:
  std::regex spaces_{"\\s+"};
};

TEST_F(ClusterDoc, HasEveryArgumentWithItsDefault) {
  for (const Argument& argument : cluster_arguments()) {
    const std::string text = argument.fallback.empty()
                                 ? argument.name
                                 : fmt::format("{}={}", argument.name, argument.fallback);
    EXPECT_THAT(text_, HasSubstr(fmt::format("\n| `{}` |", text)));
  }
}

TEST_F(ClusterDoc, ComputesAStepAsTheLibraryDoes) {
  std::smatch cluster;
  ASSERT_TRUE(std::regex_search(text_, cluster, std::regex("By hand: `([^`]+)`")));
  ClusterModel model = parse_cluster(cluster[1].str());
  model.slow_cores = {{.core = CoreRank{3}, .factor = 2}};
  EXPECT_THAT(words(), HasSubstr(fmt::format("The step takes 0.08 + 0.00066 + 0.001 = {:.5f} s.",
                                             StepTimes(model).step_seconds(10, 4))));
}

TEST_F(ClusterDoc, ComputesAStepOfHostsAsTheLibraryDoes) {
  std::smatch cluster;
  ASSERT_TRUE(std::regex_search(text_, cluster, std::regex("By hand: `([^`]+hosts=[^`]+)`")));
  StepTimes times(parse_cluster(cluster[1].str()));
  const ExchangeSeconds exchange = times.exchange_seconds(128, 12);
  EXPECT_THAT(words(),
              HasSubstr(fmt::format("6 + 4 x 0.01 = {:.2f} s.", times.host_seconds(128, 12))));
  EXPECT_THAT(words(),
              HasSubstr(fmt::format("The step takes {:.2f} + {:.4f} + {:.5f} + {:.4f} = {:.5f} s.",
                                    times.host_seconds(128, 12), exchange.sums, exchange.memory,
                                    exchange.parts, times.step_seconds(128, 12))));
}

TEST_F(ClusterDoc, ComputesAStepOfThisMachineAsTheLibraryDoes) {
  const MachineCalibration machine{
      .alone = {.substep_seconds = 2e-3, .update_seconds = 1e-3},
      .together = {.substep_seconds = 2.5e-3, .update_seconds = 1.5e-3, .threads = 2}};
  EXPECT_THAT(words(), HasSubstr(fmt::format("on one core takes 12 x 2 + 1 = {:.0f} ms.",
                                             1e3 * step_seconds_here(machine, 12, 1))));
}

TEST_F(ClusterDoc, ComputesAStepOfManyCoresAsTheLibraryDoes) {
  const auto seconds = [](std::int64_t at_once) {
    // As the text has them: what a step takes, and nothing of it by itself.
    const auto measured = [at_once](std::int64_t cores, std::int64_t substeps, double ms) {
      return Calibration{.update_seconds = ms / 1e3,
                         .minibatches_at_once = at_once,
                         .threads = 2,
                         .cores_per_thread = cores,
                         .substeps = substeps,
                         .steps = 1};
    };
    const MachineCalibration machine{.together = measured(1, 4, 10),
                                     .many_cores = measured(16, 1, 50),
                                     .many_full_cores = measured(16, 4, 146)};
    return step_seconds_here(machine, 24, 8);
  };
  EXPECT_THAT(words(),
              HasSubstr("10 ms with one core of 4 minibatches on each thread, 50 ms with 16 cores "
                        "of one, 146 ms with 16 cores of 4."));
  EXPECT_THAT(words(), HasSubstr(fmt::format("0.93 + 4 x 1.07 + 12 x 2 = {:.1f} ms, or, in passes "
                                             "of up to 4 minibatches, 0.93 + 8 x 1.07 + 12 x 2 = "
                                             "{:.1f} ms.",
                                             1e3 * seconds(1), 1e3 * seconds(4))));
}

// In a short form: a real one takes minutes.
TEST_F(ClusterDoc, HasABenchmarkThatRuns) {
  const test::TempFolder folder;
  const std::regex command("\n\\$ bench_step_model ([^\n]+)");
  int commands = 0;
  for (std::sregex_iterator it(text_.begin(), text_.end(), command), end; it != end; ++it) {
    std::istringstream words((*it)[1].str());
    std::vector<std::string> arguments{"--quick", "--models", "eigen/softmax", "libtorch/mnist-cnn",
                                       "--minibatches=8"};
    for (std::string word; words >> word;) arguments.push_back(word);
    const test::ProgramResult result =
        test::run_program(RUBATO_BENCH_STEP_MODEL, arguments, folder.path());
    EXPECT_EQ(result.code, 0) << (*it)[1] << "\n" << result.err;
    EXPECT_THAT(result.out, HasSubstr("both: calibrated with both, and the line between them"));
    ++commands;
  }
  EXPECT_EQ(commands, 1);
  const auto json = nlohmann::json::parse(test::read_file(folder.path() / "steps.json"));
  ASSERT_EQ(json.at("steps").size(), 2 * 4) << "models and numbers of cores";
  for (const auto& step : json.at("steps")) {
    EXPECT_GT(step.at("measured_seconds").at(0), 0);
    EXPECT_GT(step.at("predicted_seconds").at("both").at(0), 0);
    EXPECT_TRUE(step.at("error").contains("alone"));
  }
}

TEST(BenchStepModel, RefusesWhatItDoesNotKnow) {
  const test::ProgramResult result =
      test::run_program(RUBATO_BENCH_STEP_MODEL, {"--quick", "--models", "softmax"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("model softmax; accepted: eigen/MODEL or libtorch/MODEL"));
}

}  // namespace
}  // namespace rubato
