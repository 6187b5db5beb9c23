#include "runs/experiment/answer/statistics.hpp"

#include <array>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato {
namespace {

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

// The test divides by the deviation.
TEST(PairedDifference, OfThatDoesNotDeviateIsNotTested) {
  const std::array two{1.0, 2.0};
  EXPECT_EQ(paired_difference(two, two).p, 1) << "they are equal";
  const PairedDifference same = paired_difference(two, std::array{0.5, 1.5});
  EXPECT_EQ(same.difference.mean, 0.5);
  EXPECT_EQ(same.p, std::nullopt);
  EXPECT_EQ(same.difference.half_width, std::nullopt);
  // Accuracies of 360 images in percent: all differences are 5 of them, but for rounding.
  const auto percent = [](double of) { return of / 360 * 100; };
  const std::array one{percent(301), percent(317), percent(334)};
  const std::array other{percent(296), percent(312), percent(329)};
  ASSERT_NE(one[0] - other[0], one[1] - other[1]);
  EXPECT_EQ(paired_difference(one, other).p, std::nullopt);
  EXPECT_EQ(paired_difference(one, other).difference.deviation, 0);
  // One image more is no rounding.
  EXPECT_TRUE(paired_difference(one, std::array{other[0], other[1], percent(328)}).p);
}

TEST(PairedDifference, OfOnePairTestsNothing) {
  EXPECT_FALSE(paired_difference(std::array{1.0}, std::array{2.0}).p.has_value());
}

TEST(MarginTest, IsTheOneSidedTTest) {
  // Deficits of 1 and 3: the mean is 2 and the standard error 1. With one degree of freedom,
  // Student's distribution is Cauchy's: its 95 % quantile is tan(0.45 pi).
  const MarginTest two = *margin_test(estimate(std::array{1.0, 3.0}), 5);
  EXPECT_NEAR(two.bound, 2 + std::tan(0.45 * M_PI), 1e-9);
  EXPECT_NEAR(two.p, 0.5 - std::atan(3.0) / M_PI, 1e-12);
  EXPECT_EQ(two.pairs, 2);
  // By scipy.stats.t, with three degrees of freedom.
  const MarginTest four = *margin_test(estimate(std::array{0.0, 1.0, 0.0, 1.0}), 1);
  EXPECT_NEAR(four.bound, 1.1793575063, 1e-9);
  EXPECT_NEAR(four.p, 0.0908450569, 1e-9);
  EXPECT_EQ(four.pairs, 3) << "2.0667, rounded up";
  EXPECT_GT(margin_test(estimate(std::array{6.0, 8.0}), 5)->p, 0.5) << "it is behind by more";
}

TEST(MarginTest, IsNotDefinedForDeficitsThatDoNotVary) {
  EXPECT_FALSE(margin_test(estimate(std::array{1.0, 1.0}), 2));
  EXPECT_FALSE(margin_test(estimate(std::array{0.1, 0.1 + 1e-17}), 2));
  EXPECT_FALSE(margin_test(estimate(std::array{1.0}), 2));
}

TEST(PairsNeeded, IsRoundedUpWithinItsLimits) {
  EXPECT_EQ(pairs_needed(1, 1), 7) << "6.2001";
  EXPECT_EQ(pairs_needed(1, 0.5), 25) << "24.8";
  EXPECT_EQ(pairs_needed(0, 1), 2);
  EXPECT_EQ(pairs_needed(1, 1e-300), kMostPairs);
}

TEST(InterquartileMean, LeavesAQuarterOutAtEachEnd) {
  EXPECT_EQ(interquartile_mean({5, 1, 100, 3}), 4);
  EXPECT_EQ(interquartile_mean({5, 1, 9}), 5) << "of three nothing is left out";
  EXPECT_EQ(interquartile_mean({1, 2, 3, 4, 5, 6, 7, 60}), 4.5);
  EXPECT_EQ(interquartile_mean({-INFINITY, 2, 3, 4}), 2.5) << "a quarter may be lost";
  EXPECT_EQ(interquartile_mean({-INFINITY, -INFINITY, 3, 4}), -INFINITY);
}

TEST(MiddleInterval, LeavesAFortiethOutAtEachEnd) {
  std::vector<double> numbers;
  for (int i = 80; i > 0; --i) numbers.push_back(i);
  EXPECT_EQ(middle_interval(numbers).low, 3);
  EXPECT_EQ(middle_interval(numbers).high, 78);
  EXPECT_EQ(middle_interval({7}).low, 7);
}

TEST(Ranks, AreSharedByEquals) {
  EXPECT_THAT(ranks_of(std::vector<double>{3, 9, 3, -INFINITY}), ElementsAre(2.5, 1, 2.5, 4));
  EXPECT_THAT(ranks_of(std::vector<double>{-INFINITY, 1, -INFINITY}), ElementsAre(2.5, 1, 2.5));
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
