#include "numbers/collective/tree_sum.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/numbers/sums.hpp>

#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::random_values;

constexpr std::size_t kLeaves = 100;
constexpr std::size_t kLength = 3000;

template <class T>
class TreeSum : public testing::Test {
 protected:
  TreeSum() {
    for (std::uint32_t i = 0; i < kLeaves; ++i) {
      leaves_.push_back(random_values<T>(kLength, i));
      pointers_.push_back(leaves_.back().data());
    }
  }

  [[nodiscard]] std::span<const T* const> first(std::size_t count) const {
    return std::span(pointers_).first(count);
  }

  // Neighbours added two by two, level by level: the definition.
  [[nodiscard]] std::vector<T> expected(std::size_t count) const {
    std::vector<std::vector<T>> row(leaves_.begin(),
                                    leaves_.begin() + static_cast<std::ptrdiff_t>(count));
    while (row.size() > 1) {
      for (std::size_t i = 0; i + 1 < row.size(); i += 2) {
        for (std::size_t k = 0; k < kLength; ++k) row[i][k] += row[i + 1][k];
      }
      for (std::size_t i = 1; 2 * i < row.size(); ++i) row[i] = row[2 * i];
      row.resize((row.size() + 1) / 2);
    }
    return row.front();
  }

  std::vector<std::vector<T>> leaves_;
  std::vector<const T*> pointers_;
};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(TreeSum, Types);

TYPED_TEST(TreeSum, HasTheOrderOfTheTree) {
  for (std::size_t count = 1; count <= kLeaves; ++count) {
    std::vector<TypeParam> sum(kLength);
    tree_sum(this->first(count), 0, std::span(sum));
    ASSERT_EQ(sum, this->expected(count)) << count << " leaves";
  }
}

TYPED_TEST(TreeSum, IsTheSameWhereverItIsCut) {
  for (const std::size_t count : {1U, 3U, 8U, 9U, 100U}) {
    const auto whole = this->expected(count);
    for (const std::size_t length : {0U, 1U, 7U, 511U, 512U, 1024U, 1025U, 2900U}) {
      for (const std::size_t begin : {0U, 1U, 99U}) {
        std::vector<TypeParam> sum(length);
        tree_sum(this->first(count), begin, std::span(sum));
        ASSERT_TRUE(
            std::equal(sum.begin(), sum.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)))
            << count << " leaves, " << length << " elements from " << begin;
      }
    }
  }
}

// The header allows it: a thread sums its part into one of the buffers.
TYPED_TEST(TreeSum, MayGoIntoOneOfItsLeaves) {
  using T = TypeParam;
  constexpr std::size_t kBegin = 99;
  for (const std::size_t count : {1U, 2U, 8U, 9U, 21U, 100U}) {
    const auto whole = this->expected(count);
    for (std::size_t into = 0; into < count; ++into) {
      auto own = this->leaves_[into];
      auto pointers = this->pointers_;
      pointers[into] = own.data();
      tree_sum(std::span<const T* const>(pointers).first(count), kBegin,
               std::span(own).subspan(kBegin));
      ASSERT_TRUE(std::equal(own.begin() + kBegin, own.end(), whole.begin() + kBegin))
          << count << " leaves, into leaf " << into;
    }
  }
}

template <class T>
std::vector<SgdRange<T>> some_ranges() {
  return {{1, {.gradient_factor = T(0.5), .learning_rate = T(0.1)}},
          {1500, {.gradient_factor = T(1) / 3, .learning_rate = T(0.1), .momentum = T(0.9)}},
          {kLength,
           {.gradient_factor = T(1),
            .learning_rate = T(0.2),
            .momentum = T(0.5),
            .weight_decay = T(0.01),
            .nesterov = true}}};
}

TYPED_TEST(TreeSum, WithAStepIsTheSumAndThenTheStepOfEachRange) {
  using T = TypeParam;
  const auto ranges = some_ranges<T>();
  for (const std::size_t count : {1U, 8U, 21U}) {
    auto parameters = random_values<T>(kLength, 1000);
    auto velocity = random_values<T>(kLength, 1001);
    auto expected_parameters = parameters;
    auto expected_velocity = velocity;
    const auto gradient = this->expected(count);
    std::size_t begin = 0;
    for (const auto& range : ranges) {
      const std::size_t n = range.end - begin;
      sgd_step(std::span(expected_parameters).subspan(begin, n),
               std::span(expected_velocity).subspan(begin, n),
               std::span<const T>(gradient).subspan(begin, n), range.coefficients);
      begin = range.end;
    }
    // In two cuts that no range knows of.
    const std::span<const SgdRange<T>> all(ranges);
    for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{0, 777}, {777, kLength}}) {
      tree_sum_sgd(this->first(count), from, std::span(parameters).subspan(from, to - from),
                   std::span(velocity).subspan(from, to - from), all);
    }
    EXPECT_EQ(parameters, expected_parameters) << count << " leaves";
    EXPECT_EQ(velocity, expected_velocity) << count << " leaves";
  }
}

TYPED_TEST(TreeSum, LeavesRangesAloneThatAreToBe) {
  using T = TypeParam;
  auto ranges = some_ranges<T>();
  ranges[1] = {.end = ranges[1].end, .left_alone = true};
  // They are not read, either.
  for (std::vector<T>& leaf : this->leaves_) {
    std::fill(leaf.begin() + 1, leaf.begin() + 1500, std::numeric_limits<T>::quiet_NaN());
  }
  for (const std::size_t count : {1U, 8U, 21U}) {
    const auto before = random_values<T>(kLength, 1000);
    const auto velocity_before = random_values<T>(kLength, 1001);
    auto parameters = before;
    auto velocity = velocity_before;
    tree_sum_sgd(this->first(count), 0, std::span(parameters), std::span(velocity),
                 std::span<const SgdRange<T>>(ranges));
    for (std::size_t i = 1; i < 1500; ++i) {
      ASSERT_EQ(parameters[i], before[i]) << count << " leaves, " << i;
      ASSERT_EQ(velocity[i], velocity_before[i]) << count << " leaves, " << i;
    }
    EXPECT_NE(parameters[0], before[0]) << count << " leaves";
    EXPECT_NE(parameters[1500], before[1500]) << count << " leaves";
  }
}

TYPED_TEST(TreeSum, NeedsNoVelocityWithoutMomentum) {
  using T = TypeParam;
  std::vector<T> parameters(kLength, T(1));
  const std::vector<SgdRange<T>> ranges{{kLength, {.learning_rate = T(1)}}};
  tree_sum_sgd(this->first(2), 0, std::span(parameters), std::span<T>(),
               std::span<const SgdRange<T>>(ranges));
  EXPECT_EQ(parameters[7], T(1) - (this->leaves_[0][7] + this->leaves_[1][7]));
}

}  // namespace
}  // namespace rubato
