#include <cmath>
#include <cstdint>

#include <gmock/gmock.h>

#include <rubato/steps/random.hpp>

namespace rubato {
namespace {

TEST(NormalNumbers, AreStandardNormalAndIndependent) {
  constexpr std::uint64_t kPairs = 200'000;
  const NormalNumbers normal({.seed = 1, .epoch = 2, .step = 3, .minibatch = 4});
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  double products = 0;
  double lagged = 0;
  double before = 0;
  std::int64_t beyond_two = 0;
  for (std::uint64_t n = 0; n < kPairs; ++n) {
    const auto [first, second] = normal.pair(n);
    for (const double value : {first, second}) {
      sum += value;
      squares += value * value;
      fourths += std::pow(value, 4);
      beyond_two += std::abs(value) > 2 ? 1 : 0;
    }
    products += first * second;
    lagged += before * first;
    before = second;
  }
  constexpr auto kNumbers = static_cast<double>(2 * kPairs);
  // Five standard errors each.
  EXPECT_NEAR(sum / kNumbers, 0, 5 / std::sqrt(kNumbers));
  EXPECT_NEAR(squares / kNumbers, 1, 5 * std::sqrt(2 / kNumbers));
  EXPECT_NEAR(fourths / kNumbers, 3, 5 * std::sqrt(96 / kNumbers));
  EXPECT_NEAR(static_cast<double>(beyond_two) / kNumbers, std::erfc(std::sqrt(2.0)),
              5 * std::sqrt(0.0455 * 0.9545 / kNumbers));
  EXPECT_NEAR(products / kPairs, 0, 5 / std::sqrt(kPairs));
  EXPECT_NEAR(lagged / kPairs, 0, 5 / std::sqrt(kPairs));
}

TEST(NormalNumbers, BelongToTheirKey) {
  const StreamKey key{.seed = 1, .epoch = 2, .step = 3, .minibatch = 4};
  const auto first = NormalNumbers(key).pair(7);
  EXPECT_EQ(NormalNumbers(key).pair(7), first);
  EXPECT_NE(NormalNumbers(key).pair(8), first);
  for (const StreamKey& other : {StreamKey{.seed = 2, .epoch = 2, .step = 3, .minibatch = 4},
                                 StreamKey{.seed = 1, .epoch = 1, .step = 3, .minibatch = 4},
                                 StreamKey{.seed = 1, .epoch = 2, .step = 4, .minibatch = 4},
                                 StreamKey{.seed = 1, .epoch = 2, .step = 3, .minibatch = 5}}) {
    EXPECT_NE(NormalNumbers(other).pair(7), first);
  }
}

TEST(NormalNumbers, OneByOneAreThePairs) {
  const NormalNumbers normal({.seed = 5});
  for (std::uint64_t n = 0; n < 10; ++n) {
    EXPECT_EQ(normal[2 * n], normal.pair(n)[0]);
    EXPECT_EQ(normal[2 * n + 1], normal.pair(n)[1]);
  }
}

TEST(NormalNumbers, AreMadeOfUniformOnes) {
  constexpr std::uint64_t kNumbers = 100'000;
  const NormalNumbers numbers({.seed = 5});
  double sum = 0;
  for (std::uint64_t n = 0; n < kNumbers; ++n) {
    const double number = numbers.uniform(n);
    ASSERT_GE(number, 0);
    ASSERT_LT(number, 1);
    sum += number;
  }
  // Five standard errors.
  EXPECT_NEAR(sum / kNumbers, 0.5, 5 * std::sqrt(1.0 / 12 / kNumbers));
}

}  // namespace
}  // namespace rubato
