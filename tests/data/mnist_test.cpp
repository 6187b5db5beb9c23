#include <filesystem>

#include <gmock/gmock.h>

#include <rubato/loop/images.hpp>

#include "support/matchers.hpp"

namespace rubato {
namespace {

// The real thing, where it lies beside the checkout.
TEST(Mnist, IsReadAsItIsKnown) {
  const std::filesystem::path folder = RUBATO_SHARED_DIR "/data/mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "MNIST is not at " << folder;
  const TrainTestImages mnist = read_idx_folder(folder);
  EXPECT_EQ(mnist.train.count, 60'000);
  EXPECT_EQ(mnist.test.count, 10'000);
  for (const ImageSet* set : {&mnist.train, &mnist.test}) {
    EXPECT_EQ(set->height, 28);
    EXPECT_EQ(set->width, 28);
    EXPECT_EQ(set->pixels.size(), static_cast<std::size_t>(set->count) * 28 * 28);
    EXPECT_EQ(set->labels.size(), static_cast<std::size_t>(set->count));
  }
  // The two numbers with which every MNIST example normalises.
  const auto statistics = pixel_statistics(mnist.train);
  EXPECT_NEAR(statistics.mean, 0.1307, 0.00005);
  EXPECT_NEAR(statistics.deviation, 0.3081, 0.00005);
  EXPECT_THAT(std::vector(mnist.train.labels.begin(), mnist.train.labels.begin() + 5),
              ElementsAre(5, 0, 4, 1, 9));
  EXPECT_THAT(std::vector(mnist.test.labels.begin(), mnist.test.labels.begin() + 5),
              ElementsAre(7, 2, 1, 0, 4));
}

}  // namespace
}  // namespace rubato
