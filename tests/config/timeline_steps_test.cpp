#include <gmock/gmock.h>

#include "runs/config/readings.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(TimelineSteps, AreCountedFromOne) {
  const TimelineSteps steps = parse_timeline("steps=10..20");
  EXPECT_EQ(steps.first.value(), 9);
  EXPECT_EQ(steps.last.value(), 19);
  EXPECT_EQ(parse_timeline("steps=3..3").last.value(), 2);
  EXPECT_EQ(parse_timeline("all").first.value(), 0);
  EXPECT_GT(parse_timeline("all").last.value(), 1'000'000'000);
}

TEST(TimelineSteps, SayWhatWouldBeAccepted) {
  for (const char* const text : {"steps=3", "10..20", "none", "all,2", "steps:3..4"}) {
    EXPECT_THAT(error_of([&] { return parse_timeline(text); }),
                EndsWith("names no steps; accepted: all, or such as steps=100..120"))
        << text;
  }
  EXPECT_THAT(error_of([] { return parse_timeline("steps=5..4"); }),
              HasSubstr("a whole number from 5 to"));
  EXPECT_THAT(error_of([] { return parse_timeline("steps=0..4"); }),
              HasSubstr("a whole number from 1 to"));
  EXPECT_NE(error_of([] { return parse_timeline("steps=1..2..3"); }), "");
}

}  // namespace
}  // namespace rubato
