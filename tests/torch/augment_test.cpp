#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <rubato/core/error.hpp>
#include <rubato/torch/augment.hpp>

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

}  // namespace
}  // namespace rubato
