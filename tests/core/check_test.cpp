#include "base/core/check.hpp"

#include <gtest/gtest.h>

TEST(CheckDeathTest, AbortsWithItsReason) {
  const int leaves = 0;
  EXPECT_DEATH(RUBATO_CHECK(leaves > 0, "a step has work"), "a step has work .leaves > 0 does not");
}

TEST(Check, PassesWhereTheInvariantHolds) {
  RUBATO_CHECK(true, "always");
}
