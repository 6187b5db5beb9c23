#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/trainer.hpp>

namespace rubato {
namespace {

TEST(RandomShift, MovesEachImageByItselfAndRepeatsTheEdge) {
  at::manual_seed(3);
  const at::Tensor images = at::arange(25, at::kFloat).reshape({1, 1, 5, 5}).repeat({200, 1, 1, 1});
  const at::Tensor moved = random_shift(1)(images);
  ASSERT_EQ(moved.sizes(), images.sizes());
  std::set<std::pair<int, int>> seen;
  for (std::int64_t i = 0; i < 200; ++i) {
    // The value in the middle says where the image went.
    const int middle = static_cast<int>(moved[i][0][2][2].item<float>());
    const int down = 2 - middle / 5;
    const int right = 2 - middle % 5;
    seen.emplace(down, right);
    for (int row = 0; row < 5; ++row) {
      for (int column = 0; column < 5; ++column) {
        EXPECT_EQ(moved[i][0][row][column].item<float>(),
                  static_cast<float>(5 * std::clamp(row - down, 0, 4) +
                                     std::clamp(column - right, 0, 4)));
      }
    }
  }
  EXPECT_EQ(seen.size(), 9);
  // Rows and columns are not the same, and channels move together.
  const at::Tensor wide = at::arange(2 * 3 * 7, at::kFloat).reshape({1, 2, 3, 7});
  const at::Tensor shifted = random_shift(2)(wide.repeat({50, 1, 1, 1}));
  ASSERT_EQ(shifted.sizes(), (std::vector<std::int64_t>{50, 2, 3, 7}));
  std::set<std::pair<int, int>> places;
  for (std::int64_t i = 0; i < 50; ++i) {
    const int middle = static_cast<int>(shifted[i][0][1][3].item<float>());
    places.emplace(middle / 7, middle % 7);
    EXPECT_EQ(shifted[i][1][1][3].item<float>(), static_cast<float>(middle + 21));
  }
  // Columns 1 to 5, of the three rows that there are.
  EXPECT_EQ(places.begin()->first, 0);
  EXPECT_EQ(places.rbegin()->first, 2);
  EXPECT_TRUE(std::all_of(places.begin(), places.end(), [](const auto& place) {
    return place.second >= 1 && place.second <= 5;
  }));
  EXPECT_TRUE(at::equal(random_shift(0)(images), images));
  EXPECT_THROW(static_cast<void>(random_shift(-1)), Error);
  EXPECT_THROW(static_cast<void>(random_shift(1)(at::zeros({4, 5}))), Error);
}

// Images whose values say where they came from; none is 0.
at::Tensor numbered(std::int64_t count, std::int64_t channels, std::int64_t height,
                    std::int64_t width) {
  return (at::arange(channels * height * width, at::kFloat) + 1)
      .reshape({1, channels, height, width})
      .repeat({count, 1, 1, 1});
}

TEST(RandomFlip, MirrorsHalfOfTheImages) {
  at::manual_seed(3);
  const at::Tensor images = numbered(400, 2, 3, 4);
  const at::Tensor flipped = random_flip()(images);
  int mirrored = 0;
  for (std::int64_t i = 0; i < 400; ++i) {
    const bool same = at::equal(flipped[i], images[i]);
    EXPECT_TRUE(same || at::equal(flipped[i], images[i].flip({2})));
    if (!same) ++mirrored;
  }
  EXPECT_NEAR(mirrored, 200, 50);
  EXPECT_THROW(static_cast<void>(random_flip()(at::zeros({4, 5}))), Error);
}

TEST(RandomCrop, MovesEachImageAndFillsWithZeros) {
  at::manual_seed(3);
  const at::Tensor images = numbered(300, 1, 3, 3);
  const at::Tensor cropped = random_crop(1)(images);
  ASSERT_EQ(cropped.sizes(), images.sizes());
  std::set<int> middles;
  for (std::int64_t i = 0; i < 300; ++i) {
    const int middle = static_cast<int>(cropped[i][0][1][1].item<float>()) - 1;
    middles.insert(middle);
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 3; ++column) {
        const int from_row = middle / 3 + row - 1;
        const int from_column = middle % 3 + column - 1;
        const bool inside = from_row >= 0 && from_row < 3 && from_column >= 0 && from_column < 3;
        EXPECT_EQ(cropped[i][0][row][column].item<float>(),
                  inside ? static_cast<float>(3 * from_row + from_column + 1) : 0.0F);
      }
    }
  }
  EXPECT_EQ(middles.size(), 9);
  EXPECT_THROW(static_cast<void>(random_crop(-1)), Error);
}

TEST(RandomCutout, SetsASquareToZeroThatMayLieOutside) {
  at::manual_seed(3);
  const at::Tensor images = numbered(500, 2, 5, 6);
  const at::Tensor cut = random_cutout(3)(images);
  std::set<int> zeros;
  for (std::int64_t i = 0; i < 500; ++i) {
    const at::Tensor kept = cut[i].ne(0);
    EXPECT_TRUE(at::equal(cut[i], images[i] * kept)) << "the rest is as it was";
    EXPECT_TRUE(at::equal(kept[0], kept[1])) << "of all channels";
    const auto count = static_cast<int>(30 - kept[0].sum().item<std::int64_t>());
    zeros.insert(count);
    // A rectangle.
    const auto rows = kept[0].logical_not().any(1).sum().item<std::int64_t>();
    const auto columns = kept[0].logical_not().any(0).sum().item<std::int64_t>();
    EXPECT_EQ(rows * columns, count);
  }
  EXPECT_EQ(zeros, (std::set<int>{4, 6, 9}));
  EXPECT_TRUE(at::equal(images, numbered(500, 2, 5, 6))) << "what was given is not changed";
  EXPECT_THROW(static_cast<void>(random_cutout(0)), Error);
}

TEST(Augmentation, DoesOneAfterTheOther) {
  const at::Tensor images = numbered(50, 1, 4, 4);
  const auto augmented = [&](const Augmentation& by) {
    at::manual_seed(5);
    return by(images);
  };
  EXPECT_FALSE(augmentation({}));
  const at::Tensor both = augmented(augmentation(parse_augmentations("flip+cutout:size=2")));
  at::manual_seed(5);
  const at::Tensor flipped = random_flip()(images);
  EXPECT_TRUE(at::equal(both, random_cutout(2)(flipped)));
  EXPECT_TRUE(at::equal(augmented(augmentation(parse_augmentations("shift:pixels=1"))),
                        augmented(random_shift(1))));
  EXPECT_TRUE(at::equal(augmented(augmentation(parse_augmentations("crop:padding=3"))),
                        augmented(random_crop(3))));
  for (const char* const wrong : {"flop", "flip+", "+flip", "shift:pixels=-1", "cutout:size=0"}) {
    EXPECT_THROW(static_cast<void>(parse_augmentations(wrong)), Error) << wrong;
  }
}

}  // namespace
}  // namespace rubato
