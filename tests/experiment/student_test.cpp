#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "runs/experiment/answer/statistics.hpp"

namespace rubato {
namespace {

TEST(StudentTwoSided, HasItsClosedForms) {
  for (const double t : {0.1, 1.0, 2.0, -3.5, 40.0}) {
    // With one degree of freedom it is Cauchy's distribution.
    EXPECT_NEAR(student_two_sided(t, 1), 1 - 2 / M_PI * std::atan(std::abs(t)), 1e-13) << t;
    EXPECT_NEAR(student_two_sided(t, 2), 1 - std::abs(t) / std::sqrt(2 + t * t), 1e-13) << t;
  }
  EXPECT_EQ(student_two_sided(0, 4), 1);
  EXPECT_EQ(student_two_sided(INFINITY, 4), 0);
}

TEST(StudentUpper, IsHalfOfTheTwoSidedOne) {
  EXPECT_NEAR(student_upper(2, 4), student_two_sided(2, 4) / 2, 1e-15);
  EXPECT_NEAR(student_upper(-2, 4), 1 - student_two_sided(2, 4) / 2, 1e-15);
  EXPECT_EQ(student_upper(0, 4), 0.5);
}

TEST(StudentCritical, HasTheQuantilesOfTables) {
  // qt(0.975, degrees) of R.
  for (const auto& [degrees, quantile] : {std::pair{1, 12.7062047362},
                                          {2, 4.3026527297},
                                          {3, 3.1824463053},
                                          {4, 2.7764451052},
                                          {5, 2.5705818356},
                                          {9, 2.2621571628},
                                          {30, 2.0422724563},
                                          {100, 1.9839715185}}) {
    EXPECT_NEAR(student_critical(0.05, degrees), quantile, 1e-9) << degrees;
  }
  EXPECT_NEAR(student_critical(0.01, 4), 4.6040948713, 1e-9);
  EXPECT_NEAR(student_critical(1, 4), 0, 1e-9);
}

TEST(TTestPower, HasTheValuesOfOtherPrograms) {
  // G*Power, difference between two dependent means, two tails, alpha 0.05.
  EXPECT_NEAR(t_test_power(0.5, 34, 0.05), 0.8077775, 1e-6);
  EXPECT_NEAR(t_test_power(0.8, 15, 0.05), 0.8213105, 1e-6);
}

TEST(TTestPower, IsTheLevelWithoutAnEffect) {
  for (const int pairs : {2, 3, 5, 20}) {
    for (const double level : {0.05, 0.01, 0.05 / 62}) {
      EXPECT_NEAR(t_test_power(0, pairs, level), level, 1e-12) << pairs;
    }
  }
}

TEST(DetectableEffect, IsWhereThePowerIs) {
  for (const int pairs : {2, 3, 5, 10}) {
    const double effect = detectable_effect(pairs, 0.05, 0.8);
    EXPECT_NEAR(t_test_power(effect, pairs, 0.05), 0.8, 1e-12) << pairs;
  }
  // By Simpson's rule over the distribution of the estimated deviation.
  EXPECT_NEAR(detectable_effect(2, 0.05 / 8, 0.8), 92.3056255293, 1e-9);
  EXPECT_NEAR(detectable_effect(5, 0.05, 0.8), 1.68199696596, 1e-9);
  EXPECT_NEAR(detectable_effect(20, 0.05 / 62, 0.8), 1.1009896252, 1e-9);
  EXPECT_GT(detectable_effect(5, 0.05 / 8, 0.8), detectable_effect(5, 0.05, 0.8));
}

}  // namespace
}  // namespace rubato
