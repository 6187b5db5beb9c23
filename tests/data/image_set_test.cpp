#include <cmath>

#include <gmock/gmock.h>

#include <rubato/loop/images.hpp>

#include "support/matchers.hpp"

namespace rubato {
namespace {

ImageSet set_of(std::vector<std::uint8_t> pixels) {
  const auto width = static_cast<std::int64_t>(pixels.size());
  return {.count = 1, .height = 1, .width = width, .pixels = std::move(pixels), .labels = {0}};
}

TEST(ImageSet, ImagesFollowEachOther) {
  const ImageSet set{
      .count = 2, .height = 1, .width = 3, .pixels = {1, 2, 3, 4, 5, 6}, .labels = {0, 1}};
  EXPECT_THAT(set.image(0), ElementsAre(1, 2, 3));
  EXPECT_THAT(set.image(1), ElementsAre(4, 5, 6));
}

TEST(PixelStatistics, AreThoseOfThePopulation) {
  const auto statistics = pixel_statistics(set_of({0, 0, 255, 255, 51}));
  // In units of 255: mean 2.2 / 5, mean of squares 2.04 / 5.
  EXPECT_DOUBLE_EQ(statistics.mean, 0.44);
  EXPECT_DOUBLE_EQ(statistics.deviation, std::sqrt(0.408 - 0.44 * 0.44));
}

TEST(PixelStatistics, HaveNoDeviationWhereAllPixelsAreEqual) {
  for (const int value : {0, 1, 77, 255}) {
    const auto pixel = static_cast<std::uint8_t>(value);
    const auto statistics = pixel_statistics(set_of(std::vector<std::uint8_t>(1001, pixel)));
    EXPECT_DOUBLE_EQ(statistics.mean, value / 255.0);
    EXPECT_EQ(statistics.deviation, 0.0);
  }
}

// Sums past 2^32, where counting in 32 bits would wrap around.
TEST(PixelStatistics, CountFurtherThan32Bits) {
  std::vector<std::uint8_t> pixels(40'000'000, 255);
  std::fill(pixels.begin(), pixels.begin() + 20'000'000, std::uint8_t{0});
  const auto statistics = pixel_statistics(set_of(std::move(pixels)));
  EXPECT_DOUBLE_EQ(statistics.mean, 0.5);
  EXPECT_DOUBLE_EQ(statistics.deviation, 0.5);
}

TEST(PixelStatistics, OfNothingChangeNothing) {
  const auto statistics = pixel_statistics(ImageSet{});
  EXPECT_EQ(statistics.mean, 0.0);
  EXPECT_EQ(statistics.deviation, 1.0);
}

}  // namespace
}  // namespace rubato
