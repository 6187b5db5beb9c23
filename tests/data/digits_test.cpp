#include "loop/data/images/digits.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr std::size_t kSide = 28;
constexpr std::size_t kPixels = kSide * kSide;

// FNV-1a, 64 bits.
class Hash {
 public:
  void add(std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) value_ = (value_ ^ byte) * 0x100000001b3;
  }
  void add(const ImageSet& set) {
    add(set.pixels);
    add(set.labels);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

std::array<int, 10> class_counts(const ImageSet& set) {
  std::array<int, 10> counts{};
  for (const std::uint8_t label : set.labels) ++counts.at(label);
  return counts;
}

TEST(Digits, HaveTheShapeTheySay) {
  const ImageSet set = render_digits(7, 1);
  EXPECT_EQ(set.count, 7);
  EXPECT_EQ(set.height, 28);
  EXPECT_EQ(set.width, 28);
  EXPECT_EQ(set.pixels.size(), 7 * kPixels);
  EXPECT_EQ(set.labels.size(), 7U);
}

TEST(Digits, MayBeNone) {
  const ImageSet set = render_digits(0, 1);
  EXPECT_EQ(set.count, 0);
  EXPECT_TRUE(set.pixels.empty());
}

TEST(DigitsDeathTest, AreNotNegative) {
  EXPECT_DEATH(static_cast<void>(render_digits(-1, 1)), "a number of images");
}

TEST(Digits, DependOnSeedAndIndexOnly) {
  const ImageSet many = render_digits(100, 5);
  for (const int count : {1, 10, 37}) {
    const ImageSet few = render_digits(count, 5);
    EXPECT_TRUE(std::ranges::equal(few.pixels, std::span(many.pixels).first(few.pixels.size())));
    EXPECT_TRUE(std::ranges::equal(few.labels, std::span(many.labels).first(few.labels.size())));
  }
}

// 1,700 images are three whole parts and one that is not.
TEST(Digits, AreTheSameForEveryNumberOfThreads) {
  const ImageSet alone = render_digits(1'700, 5, 1);
  for (const int threads : {2, 3, 13}) {
    const ImageSet set = render_digits(1'700, 5, threads);
    EXPECT_EQ(set.pixels, alone.pixels) << threads;
    EXPECT_EQ(set.labels, alone.labels) << threads;
  }
}

TEST(Digits, DifferBySeedAndIndex) {
  std::set<std::vector<std::uint8_t>> images;
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    const ImageSet set = render_digits(200, seed);
    for (std::int64_t i = 0; i < set.count; ++i) {
      const auto image = set.image(i);
      images.emplace(image.begin(), image.end());
    }
  }
  EXPECT_EQ(images.size(), 600U);
  EXPECT_NE(render_digits(10, 0).labels, render_digits(10, 1).labels);
}

TEST(Digits, AreBalancedUpToOne) {
  for (const int count : {10, 95, 1000, 1001}) {
    const auto counts = class_counts(render_digits(count, 3));
    const auto [least, most] = std::ranges::minmax(counts);
    EXPECT_LE(most - least, count % 10 == 0 ? 0 : 1) << count;
  }
}

// Each digit at each place of the tens, about as often: 1000 tens, so 100 +- 10 (deviation 9.5).
TEST(Digits, ComeInNoOrder) {
  const ImageSet set = render_digits(10'000, 3);
  std::array<std::array<int, 10>, 10> counts{};
  for (std::size_t i = 0; i < set.labels.size(); ++i) ++counts.at(i % 10).at(set.labels[i]);
  for (const auto& place : counts)
    EXPECT_THAT(place, Each(AllOf(testing::Gt(55), testing::Lt(145))));
}

// Ink enough to read, paper enough to read it on, and strokes that end inside the image: on its rim
// there is noise (up to 20) and the soft edge of a stroke (up to 46) only.
TEST(Digits, AreDarkStrokesInsideTheImage) {
  constexpr int kDark = 100;
  const ImageSet set = render_digits(10'000, 4);
  for (std::int64_t i = 0; i < set.count; ++i) {
    const auto image = set.image(i);
    const auto dark = std::ranges::count_if(image, [](int pixel) { return pixel > kDark; });
    EXPECT_GT(dark, 20) << i;
    EXPECT_LT(dark, 300) << i;
    for (std::size_t k = 0; k < kSide; ++k) {
      for (const std::size_t rim : {k, kPixels - 1 - k, kSide * k, kSide * k + kSide - 1}) {
        EXPECT_LE(image[rim], 66) << "image " << i << " pixel " << rim;
      }
    }
  }
}

TEST(BuiltinDigits, AreTwoBalancedSets) {
  const TrainTestImages sets = builtin_digits();
  EXPECT_EQ(sets.train.count, 12'000);
  EXPECT_EQ(sets.test.count, 2'000);
  EXPECT_THAT(class_counts(sets.train), Each(1'200));
  EXPECT_THAT(class_counts(sets.test), Each(200));
  std::set<std::vector<std::uint8_t>> train;
  for (std::int64_t i = 0; i < sets.train.count; ++i) {
    train.emplace(sets.train.image(i).begin(), sets.train.image(i).end());
  }
  for (std::int64_t i = 0; i < sets.test.count; ++i) {
    const auto image = sets.test.image(i);
    EXPECT_FALSE(train.contains({image.begin(), image.end()})) << i;
  }
}

TEST(BuiltinDigits, MayBeTheTestDigitsAlone) {
  const ImageSet whole = builtin_digits(1).test;
  const ImageSet part = builtin_test_digits(2);
  EXPECT_EQ(part.pixels, whole.pixels);
  EXPECT_EQ(part.labels, whole.labels);
}

// Every bit of every pixel and label. The same under g++ 12 and clang++ 14 with -O0, -O2 and
// -O3 -march=native; a change of this number is a change of the data set and of every result on it.
TEST(BuiltinDigits, AreTheSameBitsEverywhere) {
  const TrainTestImages sets = builtin_digits();
  Hash hash;
  hash.add(sets.train);
  hash.add(sets.test);
  EXPECT_EQ(hash.value(), 0xb9ed7301cd889366U);
}

}  // namespace
}  // namespace rubato
