// Numbers of steps are thinned without losing an extreme.

#include "runs/page/buckets.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato::page {
namespace {

Position after(int steps) {
  Position at;
  at[Axis::steps] = steps;
  return at;
}

TEST(Buckets, HoldsEveryStepWhileThereIsRoom) {
  Buckets buckets(8);
  for (int step = 1; step <= 8; ++step) {
    buckets.begin_step(after(step));
    buckets.add("loss", 10.0 / step);
  }
  EXPECT_EQ(buckets.width(), 1);
  ASSERT_EQ(buckets.buckets().size(), 8U);
  EXPECT_EQ(buckets.buckets()[4].at[Axis::steps], 5);
  EXPECT_EQ(buckets.range_of(buckets.buckets()[4], "loss").mean(), 2);
}

TEST(Buckets, KeepsTheExtremesOfAnyNumberOfSteps) {
  for (const int steps : {9, 16, 17, 1000, 12'345}) {
    Buckets buckets(8);
    for (int step = 1; step <= steps; ++step) {
      buckets.begin_step(after(step));
      // One step is far out on each side.
      const double value = step == steps / 3 ? 1e6 : step == steps / 2 ? -1e6 : std::sin(step);
      buckets.add("loss", value);
    }
    double low = 0;
    double high = 0;
    double sum = 0;
    std::int64_t count = 0;
    for (const Buckets::Bucket& bucket : buckets.buckets()) {
      const Buckets::Range range = buckets.range_of(bucket, "loss");
      low = std::min(low, range.low);
      high = std::max(high, range.high);
      sum += range.sum;
      count += range.count;
    }
    EXPECT_EQ(low, -1e6) << steps;
    EXPECT_EQ(high, 1e6) << steps;
    EXPECT_LT(std::abs(sum), 3) << steps;
    EXPECT_EQ(count, steps);
    EXPECT_LE(buckets.buckets().size(), 8U);
    EXPECT_GE(buckets.buckets().size(), 4U) << steps;
    EXPECT_EQ(buckets.buckets().back().at[Axis::steps], steps);
  }
}

TEST(Buckets, TakesNumbersThatComeLaterAndLeavesOutWhatIsNotFinite) {
  Buckets buckets(4);
  for (int step = 1; step <= 4; ++step) {
    buckets.begin_step(after(step));
    buckets.add("loss", step == 2 ? std::numeric_limits<double>::infinity() : step);
    if (step > 2) buckets.add("gain", 2);
  }
  EXPECT_THAT(buckets.names(), ElementsAre("loss", "gain"));
  EXPECT_EQ(buckets.range_of(buckets.buckets()[0], "gain").count, 0);
  EXPECT_EQ(buckets.range_of(buckets.buckets()[1], "loss").count, 0);
  EXPECT_EQ(buckets.range_of(buckets.buckets()[3], "gain").count, 1);
  EXPECT_EQ(numbers_json(buckets, "gain", 100).dump(), "[null,null,200,200]");
}

TEST(Buckets, TakeNumbersInAnyOrder) {
  Buckets buckets(2);
  for (const auto& names : {std::array{"a", "b", "c"}, std::array{"c", "a", "b"},
                            std::array{"b", "b", "a"}, std::array{"c", "c", "c"}}) {
    buckets.begin_step(after(1));
    for (const char* name : names) buckets.add(name, name[0]);
  }
  EXPECT_THAT(buckets.names(), ElementsAre("a", "b", "c"));
  for (const char* name : {"a", "b", "c"}) {
    const Buckets::Range first = buckets.range_of(buckets.buckets()[0], name);
    EXPECT_EQ(first.count, 2) << name;
    EXPECT_EQ(first.low, name[0]);
    EXPECT_EQ(first.high, name[0]);
  }
  EXPECT_EQ(buckets.range_of(buckets.buckets()[1], "b").count, 2);
  EXPECT_EQ(buckets.range_of(buckets.buckets()[1], "c").count, 3);
}

TEST(Buckets, OfSeveralStepsHaveTheirRangeInJson) {
  Buckets buckets(2);
  for (int step = 1; step <= 4; ++step) {
    buckets.begin_step(after(step));
    buckets.add("loss", step);
  }
  EXPECT_EQ(numbers_json(buckets, "loss", 1).dump(),
            R"({"low":[1,3],"mean":[1.5,3.5],"high":[2,4]})");
  EXPECT_EQ(axes_json(buckets).dump(), R"({"steps":[2,4]})");
}

TEST(Buckets, TakeALimitedNumberOfNames) {
  Buckets buckets(2);
  buckets.begin_step(after(1));
  for (int i = 0; i < 10'000; ++i) buckets.add("name" + std::to_string(i), i);
  EXPECT_EQ(buckets.names().size(), Buckets::kMostNames);
}

}  // namespace
}  // namespace rubato::page
