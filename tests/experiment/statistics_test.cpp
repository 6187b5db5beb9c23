#include "runs/experiment/answer/statistics.hpp"

#include <array>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>

namespace rubato {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

TEST(Estimate, HasStudentsInterval) {
  const Estimate one_to_five = estimate(std::array{1.0, 2.0, 3.0, 4.0, 5.0});
  EXPECT_EQ(one_to_five.count, 5);
  EXPECT_DOUBLE_EQ(one_to_five.mean, 3);
  EXPECT_DOUBLE_EQ(one_to_five.deviation, std::sqrt(2.5));
  // t.test(1:5)$conf.int of R is 1.036757 to 4.963243.
  EXPECT_NEAR(one_to_five.half_width.value(), 1.963243, 1e-6);
}

TEST(Estimate, OfOneNumberHasNoInterval) {
  const Estimate one = estimate(std::array{7.0});
  EXPECT_EQ(one.mean, 7);
  EXPECT_EQ(one.deviation, 0);
  EXPECT_FALSE(one.half_width.has_value());
}

TEST(Estimate, OfEqualNumbersDoesNotDeviate) {
  const Estimate equal = estimate(std::array{0.1, 0.1, 0.1});
  EXPECT_EQ(equal.mean, 0.1);
  EXPECT_EQ(equal.deviation, 0);
  EXPECT_EQ(equal.half_width, 0);
}

TEST(PairedDifference, IsThatOfTheTTest) {
  const std::array other{10.0, 20.0, 30.0, 40.0, 50.0};
  const std::array one{11.0, 22.0, 33.0, 44.0, 55.0};
  const PairedDifference paired = paired_difference(one, other);
  EXPECT_DOUBLE_EQ(paired.difference.mean, 3);
  // t.test(one, other, paired = TRUE)$p.value of R.
  EXPECT_NEAR(paired.p.value(), 0.0132356, 1e-6);
  EXPECT_DOUBLE_EQ(paired_difference(other, one).difference.mean, -3);
  EXPECT_NEAR(paired_difference(other, one).p.value(), 0.0132356, 1e-6);
}

TEST(PairedDifference, OfThatDoesNotDeviateIsCertain) {
  const std::array two{1.0, 2.0};
  EXPECT_EQ(paired_difference(two, two).p, 1);
  EXPECT_EQ(paired_difference(two, std::array{0.5, 1.5}).p, 0);
}

TEST(PairedDifference, OfOnePairTestsNothing) {
  EXPECT_FALSE(paired_difference(std::array{1.0}, std::array{2.0}).p.has_value());
}

TEST(Holm, MultipliesByThoseThatAreLeft) {
  // By hand: 4 x 0.005, 3 x 0.01, 2 x 0.03, and 0.04 no less than the one before it.
  EXPECT_THAT(holm(std::array{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12), DoubleNear(0.06, 1e-12),
                          DoubleNear(0.02, 1e-12)));
  EXPECT_THAT(holm(std::array{0.6, 0.7}), ElementsAre(1, 1));
  EXPECT_THAT(holm(std::array{0.03}), ElementsAre(0.03));
  EXPECT_THAT(holm({}), ElementsAre());
}

TEST(Median, IsOfTheMiddle) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), std::nullopt);
}

TEST(Median, TakesWhatIsMissingForLarger) {
  EXPECT_EQ(median({3, 1, 2}, 2), 3);
  EXPECT_EQ(median({1, 2}, 3), std::nullopt);
  // One of the two in the middle is missing.
  EXPECT_EQ(median({1, 2}, 2), std::nullopt);
}

}  // namespace
}  // namespace rubato
