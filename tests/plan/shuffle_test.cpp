#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include <rubato/steps/random.hpp>

namespace rubato {
namespace {

TEST(Shuffle, IsAPermutation) {
  for (const std::int64_t n : {0, 1, 2, 3, 100, 1000}) {
    std::vector<std::int64_t> permutation = random_permutation(n, 7);
    std::sort(permutation.begin(), permutation.end());
    ASSERT_EQ(permutation.size(), static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < permutation.size(); ++i) {
      EXPECT_EQ(permutation[i], static_cast<std::int64_t>(i));
    }
  }
}

TEST(Shuffle, IsTorchsRandperm) {
  // torch.manual_seed(42); torch.randperm(10)
  EXPECT_EQ(random_permutation(10, 42), (std::vector<std::int64_t>{2, 6, 1, 8, 4, 5, 0, 9, 3, 7}));
}

TEST(Shuffle, TakesTheLowerHalfOfTheSeed) {
  EXPECT_EQ(random_permutation(100, 42), random_permutation(100, 42 + (std::uint64_t{1} << 32)));
  EXPECT_NE(random_permutation(100, 42), random_permutation(100, 43));
}

TEST(EpochSamples, AreTheShuffledSamplesInRuns) {
  const std::vector<std::int64_t> shuffled = random_permutation(10, 42 + 3);
  const EpochSamples samples(10, 4, 42, EpochIndex{3});
  for (std::int64_t m = 0; m < 2; ++m) {
    const auto minibatch = samples.minibatch(MinibatchIndex{m});
    EXPECT_TRUE(std::equal(minibatch.begin(), minibatch.end(), shuffled.begin() + 4 * m,
                           shuffled.begin() + 4 * m + 4));
  }
}

TEST(EpochSamples, DifferBetweenEpochs) {
  const EpochSamples first(100, 100, 42, EpochIndex{0});
  const EpochSamples second(100, 100, 42, EpochIndex{1});
  const auto a = first.minibatch(MinibatchIndex{0});
  const auto b = second.minibatch(MinibatchIndex{0});
  EXPECT_FALSE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

TEST(ShuffleDeathTest, RejectsWhatIsOutOfRange) {
  EXPECT_DEATH(static_cast<void>(random_permutation(-1, 0)), "torch.randperm draws");
  EXPECT_DEATH(static_cast<void>(random_permutation(kMaxDatasetSize + 1, 0)),
               "torch.randperm draws");
  const EpochSamples samples(10, 4, 0, EpochIndex{0});
  EXPECT_DEATH(static_cast<void>(samples.minibatch(MinibatchIndex{2})), "one of the epoch's");
  EXPECT_DEATH(static_cast<void>(samples.minibatch(MinibatchIndex{-1})), "one of the epoch's");
}

StepPlan step_of(std::int64_t first, std::int64_t minibatches, std::int64_t shift = 0) {
  StepPlan step;
  step.first_minibatch = MinibatchIndex{first};
  step.batch_size = 4 * minibatches;
  step.minibatches = minibatches;
  step.shift = shift;
  return step;
}

TEST(SampleOrder, IsThatOfTheEpochs) {
  SampleOrder order(10, 4, 42);
  for (const std::int64_t epoch : {0, 1, 5, 2}) {
    const EpochSamples samples(10, 4, 42, EpochIndex{epoch});
    const StepPlan step = step_of(0, 2);
    order.prepare(EpochIndex{epoch}, step);
    for (const MinibatchIndex minibatch : {MinibatchIndex{0}, MinibatchIndex{1}}) {
      EXPECT_THAT(order.minibatch(step, minibatch),
                  testing::ElementsAreArray(samples.minibatch(minibatch)));
    }
  }
}

TEST(SampleOrder, GoesOnInTheNextEpoch) {
  std::vector<std::int64_t> all;
  for (const std::uint64_t epoch : {3U, 4U, 5U, 6U}) {
    const auto order = random_permutation(10, 42 + epoch);
    all.insert(all.end(), order.begin(), order.end());
  }
  SampleOrder order(10, 4, 42);
  const auto expect = [&](std::int64_t epoch, const StepPlan& step, std::ptrdiff_t from) {
    order.prepare(EpochIndex{epoch}, step);
    std::vector<std::int64_t> seen;
    for (std::int64_t i = 0; i < step.minibatches; ++i) {
      const auto samples = order.minibatch(step, MinibatchIndex{step.first_minibatch.value() + i});
      seen.insert(seen.end(), samples.begin(), samples.end());
    }
    EXPECT_THAT(seen, testing::ElementsAreArray(all.begin() + from,
                                                all.begin() + from + 4 * step.minibatches));
  };
  expect(3, step_of(1, 2), 4);
  expect(4, step_of(0, 1, 2), 12);
  expect(4, step_of(1, 5, 2), 16);
  // Two epochs on, which are there already, and back.
  expect(6, step_of(0, 1, 3), 33);
  expect(3, step_of(0, 10), 0);
}

TEST(SampleOrder, EndsWithTheSamplesOfItsStep) {
  const std::vector<std::int64_t> all = random_permutation(10, 42);
  SampleOrder order(10, 4, 42);
  StepPlan step = step_of(1, 2);
  step.batch_size = 6;
  order.prepare(EpochIndex{0}, step);
  EXPECT_THAT(order.minibatch(step, MinibatchIndex{1}),
              testing::ElementsAreArray(all.begin() + 4, all.begin() + 8));
  EXPECT_THAT(order.minibatch(step, MinibatchIndex{2}),
              testing::ElementsAreArray(all.begin() + 8, all.end()));
  // And not with those that are there.
  step.batch_size = 5;
  EXPECT_THAT(order.minibatch(step, MinibatchIndex{2}), testing::ElementsAre(all[8]));
}

}  // namespace
}  // namespace rubato
