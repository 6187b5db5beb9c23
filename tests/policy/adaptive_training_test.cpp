// Training whose batch sizes are decided on the way: the same bits whoever computes, and through a
// kill. On built-in digits, and on Fashion-MNIST where it lies beside the checkout.

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rubato/base/state.hpp>
#include <rubato/loop/eigen.hpp>
#include <rubato/testing.hpp>

#include "loop/data/images/digits.hpp"
#include "policy/adaptive.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

std::vector<std::int64_t> batches_of(const test::Recorder& recorder) {
  std::vector<std::int64_t> batches;
  for (const StepRecord& step : recorder.steps) batches.push_back(step.plan.batch_size);
  return batches;
}

class AdaptiveTraining : public testing::TestWithParam<const char*> {};

TEST_P(AdaptiveTraining, HasTheSameBitsWhoeverComputesAndThroughResumes) {
  const ImageSet images = render_digits(1600, 1);
  const auto digits = to_rows<float>(images, pixel_statistics(images));
  const auto make = [&](const auto& change) {
    TrainOptions options = test::adaptive_options(32);
    options.epochs = 2;
    change(options);
    return Trainer(softmax_regression(digits), test::adaptive_source(GetParam(), 32), options);
  };
  Trainer trainer = make([](TrainOptions&) {});
  const auto recorder = trainer.add_observer<test::Recorder>();
  trainer.fit();
  const std::vector<std::int64_t> batches = batches_of(*recorder);
  ASSERT_GT(batches.size(), 12U);
  EXPECT_GT(std::set(batches.begin(), batches.end()).size(), 2U) << "it decides something";
  EXPECT_FALSE(recorder->steps.back().decision_inputs.empty());
  EXPECT_EQ(test::difference_in_bits(make, 12), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Digits, AdaptiveTraining,
                         testing::Values("noise-scale:max=256,wait=2",
                                         "goodput:min=16,max=256,threshold=0"));

fs::path fashion_folder() {
  return RUBATO_SHARED_DIR "/data/fashion-mnist";
}

// Runs adaptive_job; whether it has come to its end, and was not killed.
bool run_job(const std::string& policy, const fs::path& folder, std::int64_t cores,
             std::int64_t threads, std::int64_t killed_after = 0) {
  const std::string data = fashion_folder();
  const std::array<std::string, 5> texts{policy, folder, std::to_string(cores),
                                         std::to_string(threads), std::to_string(killed_after)};
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(RUBATO_ADAPTIVE_JOB, RUBATO_ADAPTIVE_JOB, data.c_str(), texts[0].c_str(),
            texts[1].c_str(), texts[2].c_str(), texts[3].c_str(), texts[4].c_str(),
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return false;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return true;
}

class FashionMnist : public testing::TestWithParam<const char*> {};

TEST_P(FashionMnist, HasTheSameBitsWhoeverComputesAndThroughAKill) {
  if (!fs::exists(fashion_folder())) {
    GTEST_SKIP() << "Fashion-MNIST is not at " << fashion_folder();
  }
  const test::TempFolder whole;
  ASSERT_TRUE(run_job(GetParam(), whole.path(), 1, 1));
  const State expected = read_state(whole.path() / "outcome");
  const std::int64_t steps = expected.count("steps");
  ASSERT_GT(steps, 40);
  EXPECT_GT(expected.value<double>("accuracy"), 0.7);
  const std::vector<std::int64_t> batches = expected.values<std::int64_t>("last_batches");
  EXPECT_GT(std::set(batches.begin(), batches.end()).size(), 3U) << "it decides something";

  const test::TempFolder other;
  ASSERT_TRUE(run_job(GetParam(), other.path(), 13, 3));
  EXPECT_EQ(read_state(other.path() / "outcome"), expected);

  // Killed twice, in the middle between two checkpoints, and gone on with on other threads.
  const test::TempFolder killed;
  const std::int64_t first = steps / 3 / test::kStepsOfACheckpoint * test::kStepsOfACheckpoint + 4;
  ASSERT_FALSE(run_job(GetParam(), killed.path(), 3, 2, first));
  ASSERT_FALSE(run_job(GetParam(), killed.path(), 3, 1, first + 2 * test::kStepsOfACheckpoint));
  ASSERT_TRUE(run_job(GetParam(), killed.path(), 8, 1));
  const State outcome = read_state(killed.path() / "outcome");
  for (const char* name : {"accuracy", "seconds"}) {
    EXPECT_EQ(outcome.value<double>(name), expected.value<double>(name)) << name;
  }
  EXPECT_EQ(outcome.text("weights"), expected.text("weights"));
  EXPECT_EQ(outcome.count("steps"), steps);
  // Of the last process alone.
  const std::vector<std::int64_t> last = outcome.values<std::int64_t>("last_batches");
  ASSERT_LT(last.size(), batches.size());
  EXPECT_EQ(last,
            std::vector(batches.end() - static_cast<std::ptrdiff_t>(last.size()), batches.end()));
  std::printf("%s: %lld steps, weights %.12s in three ways, one of them killed twice\n", GetParam(),
              static_cast<long long>(steps), outcome.text("weights").c_str());
}

INSTANTIATE_TEST_SUITE_P(Policies, FashionMnist,
                         testing::Values("noise-scale:max=1024", "goodput:max=1024"));

}  // namespace
}  // namespace rubato
