// What a user's unit test may look like: elastic training in one file, without libtorch, in
// milliseconds. It needs nothing but an installed rubato and GoogleTest.

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/loop/trainer.hpp>

namespace {

// Points on circles, in two classes that a line divides.
rubato::DenseDataset<float> divided_points(int count) {
  std::vector<float> rows;
  std::vector<std::int64_t> classes;
  for (int i = 0; i < count; ++i) {
    const float radius = 1 + 0.1F * static_cast<float>(i % 7);
    const float x = radius * std::cos(static_cast<float>(i));
    const float y = radius * std::sin(static_cast<float>(i));
    rows.insert(rows.end(), {x, y});
    classes.push_back(2 * x + y > 0 ? 1 : 0);
  }
  return rubato::DenseDataset<float>::classified(std::move(rows), std::move(classes), 2);
}

// Softmax regression on 8, then 3, then 16 cores.
TEST(Elastic, ThreeCoreCountsTrainWhatOneDoes) {
  const auto points = divided_points(512);
  const auto train = [&](const std::vector<std::int64_t>& cores, int threads) {
    std::vector<rubato::TraceStep> steps;
    steps.reserve(cores.size());
    for (const std::int64_t count : cores) steps.push_back({.batch_size = 128, .cores = count});
    rubato::Trainer trainer(
        rubato::softmax_regression(points, {.test = points}),
        rubato::Trace(steps, rubato::TraceEnd::cycle, "preemption"),
        {.epochs = 5, .minibatch_size = 16, .learning_rate = 0.5, .threads = threads});
    const rubato::TrainResult result = trainer.fit();
    EXPECT_EQ(result.steps, 20);
    EXPECT_GT(result.final_test->accuracy, 0.9);
    const auto weights = trainer.parameters().front().values<float>();
    return std::vector<float>(weights.begin(), weights.end());
  };
  EXPECT_EQ(train({8, 3, 16}, 2), train({1}, 1));
}

}  // namespace
