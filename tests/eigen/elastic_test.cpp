// What a user's unit test may look like: elastic training in one file, without libtorch, in
// milliseconds.

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/loop/trainer.hpp>

#include "loop/data/digits/digits.hpp"

namespace {

// Softmax regression on 8, then 3, then 16 cores.
TEST(Elastic, ThreeCoreCountsTrainWhatOneDoes) {
  const rubato::ImageSet images = rubato::render_digits(512, 1);
  const auto digits = rubato::to_rows<float>(images, rubato::pixel_statistics(images));
  const auto train = [&](const std::vector<std::int64_t>& cores, int threads) {
    std::vector<rubato::TraceStep> steps;
    steps.reserve(cores.size());
    for (const std::int64_t count : cores) steps.push_back({.batch_size = 128, .cores = count});
    rubato::Trainer trainer(
        rubato::softmax_regression(digits, {.test = digits}),
        rubato::Trace(steps, rubato::TraceEnd::cycle, "preemption"),
        {.epochs = 5, .minibatch_size = 16, .learning_rate = 0.05, .threads = threads});
    const rubato::TrainResult result = trainer.fit();
    EXPECT_EQ(result.steps, 20);
    EXPECT_GT(result.final_test->accuracy, 0.8);
    const auto weights = trainer.parameters().front().values<float>();
    return std::vector<float>(weights.begin(), weights.end());
  };
  EXPECT_EQ(train({8, 3, 16}, 2), train({1}, 1));
}

}  // namespace
