// Training whose batch sizes are decided on the way has the same bits whoever computes, and through
// a resume after every step.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/testing.hpp>

#include "loop/data/images/digits.hpp"
#include "policy/adaptive.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

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
  const auto recorder = test::recorded(trainer);
  const std::vector<std::int64_t> batches = batches_of(*recorder);
  ASSERT_GT(batches.size(), 12U);
  EXPECT_GT(std::set(batches.begin(), batches.end()).size(), 2U) << "it decides something";
  EXPECT_FALSE(recorder->steps.back().decision_inputs.empty());
  EXPECT_EQ(test::difference_in_bits(make, 12), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Digits, AdaptiveTraining,
                         testing::Values("noise-scale:max=256,wait=2",
                                         "goodput:min=16,max=256,threshold=0"));

}  // namespace
}  // namespace rubato
