#include <optional>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/availability.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// 8 devices for a minute, none for half of one, 4 until two minutes.
Availability two_minutes(TraceEnd end = TraceEnd::error) {
  return {{{0, 8}, {60, 0}, {90, 4}}, 120, "made", end};
}

std::string availability_csv(const Availability& availability) {
  std::ostringstream out;
  availability.write_csv(out);
  return out.str();
}

TEST(Availability, SaysWhatThereIsAtATime) {
  const Availability availability = two_minutes();
  EXPECT_EQ(availability.at(0), 8);
  EXPECT_EQ(availability.at(59.999), 8);
  EXPECT_EQ(availability.at(60), 0);
  EXPECT_EQ(availability.at(90), 4);
  EXPECT_EQ(availability.at(119.9), 4);
}

TEST(Availability, EndsAsItSays) {
  for (const TraceEnd end : {TraceEnd::error, TraceEnd::stop}) {
    EXPECT_EQ(two_minutes(end).at(120), std::nullopt);
    EXPECT_FALSE(two_minutes(end).endless());
  }
  EXPECT_EQ(two_minutes(TraceEnd::hold).at(1e6), 4);
  EXPECT_EQ(two_minutes(TraceEnd::cycle).at(120), 8);
  EXPECT_EQ(two_minutes(TraceEnd::cycle).at(120 * 1000 + 75), 0);
}

TEST(Availability, NamesItsNextChange) {
  const Availability availability = two_minutes();
  EXPECT_EQ(availability.next_change(0), 60);
  EXPECT_EQ(availability.next_change(60), 90);
  EXPECT_EQ(availability.next_change(59.5), 60);
  EXPECT_EQ(availability.next_change(90), 120) << "the end";
  EXPECT_EQ(availability.next_change(120), std::nullopt);
  EXPECT_EQ(two_minutes(TraceEnd::hold).next_change(90), std::nullopt);
  EXPECT_EQ(two_minutes(TraceEnd::cycle).next_change(90), 120);
  EXPECT_EQ(two_minutes(TraceEnd::cycle).next_change(120 * 7 + 90), 120 * 8);
}

TEST(Availability, OfACycleChangesOnlyWhereItDoes) {
  const Availability same_at_both_ends({{0, 4}, {10, 8}, {20, 4}}, 30, "made", TraceEnd::cycle);
  EXPECT_EQ(same_at_both_ends.next_change(20), 40);
  const Availability constant({{0, 4}}, 30, "made", TraceEnd::cycle);
  EXPECT_EQ(constant.next_change(0), std::nullopt);
}

// With fractions that a double cannot hold: who goes from change to change never stands still.
TEST(Availability, GivesTheNextNumberAtItsNextChange) {
  const Availability availability({{0, 1}, {0.1, 2}, {0.3, 3}, {0.7, 4}}, 1.1, "made",
                                  TraceEnd::cycle);
  double time = 0;
  for (int i = 1; i < 10'000; ++i) {
    const std::optional<double> next = availability.next_change(time);
    ASSERT_TRUE(next && *next > time) << time;
    time = *next;
    ASSERT_EQ(availability.at(time), i % 4 + 1) << time;
  }
}

// After 95 years of cycles microseconds are still told apart.
TEST(Availability, IsExactForALifetime) {
  const Availability availability({{0, 1}, {0.000001, 2}}, 27'900'063.996, "made", TraceEnd::cycle);
  const double late = 27'900'063.996 * 107;
  const std::optional<double> wrap = availability.next_change(late - 5);
  ASSERT_TRUE(wrap);
  EXPECT_EQ(availability.at(*wrap), 1);
  const std::optional<double> next = availability.next_change(*wrap);
  ASSERT_TRUE(next && *next > *wrap);
  EXPECT_EQ(availability.at(*next), 2);
}

TEST(Availability, KeepsChangesAlone) {
  const Availability availability({{0, 8}, {10, 8}, {20, 4}, {30, 4}}, 40, "made");
  EXPECT_EQ(availability.changes(), (std::vector<AvailabilityChange>{{0, 8}, {20, 4}}));
}

TEST(Availability, HoldsWhatItChangesToAtItsEnd) {
  const std::vector<AvailabilityChange> changes{{0, 8}, {10, 2}};
  EXPECT_EQ(Availability(changes, 10, "made", TraceEnd::hold).at(10), 2);
  EXPECT_EQ(Availability(changes, 10, "made", TraceEnd::hold).next_change(0), 10);
  EXPECT_EQ(Availability(changes, 10, "made", TraceEnd::cycle).at(10), 8);
  EXPECT_EQ(Availability(changes, 10, "made", TraceEnd::cycle).next_change(0), std::nullopt);
}

TEST(Availability, RejectsWhatIsNone) {
  const auto error = [](const std::vector<AvailabilityChange>& changes, double length = 100,
                        std::optional<double> gap = {}) {
    return error_of([&] { Availability(changes, length, "made", TraceEnd::error, gap); });
  };
  EXPECT_EQ(error({}), "made: the availability is empty; accepted: devices from 0 s on");
  EXPECT_THAT(error({{1, 8}}), HasSubstr("the first change is not at 0; accepted: 0 s"));
  EXPECT_THAT(error({{0, 8}, {5, 4}, {5, 3}}), HasSubstr("time does not increase"));
  EXPECT_THAT(error({{0, 8}, {5, 4}, {4, 3}}), HasSubstr("accepted: more than 5 s"));
  EXPECT_THAT(error({{0, 8}, {101, 4}}), HasSubstr("4 devices at 101 s: that is after the end"));
  EXPECT_THAT(error({{0, -1}}), HasSubstr("accepted: a whole number from 0 to 1048576"));
  EXPECT_THAT(error({{0, kMaxCores + 1}}), HasSubstr("out of range"));
  EXPECT_THAT(error({{0, 8}}, 0), HasSubstr("it lasts 0 s; accepted: more than 0 s"));
  EXPECT_THAT(error({{0, 8}}, kMaxAvailabilitySeconds + 1), HasSubstr("(ten years)"));
  EXPECT_EQ(error({{0, 8}}, kMaxAvailabilitySeconds), "no error");
  EXPECT_THAT(error({{0, 8}}, 100, 0), HasSubstr("a sample every 0 s"));
}

TEST(Availability, IsWrittenAndRead) {
  for (const TraceEnd end : {TraceEnd::error, TraceEnd::hold}) {
    for (const Availability& availability :
         {two_minutes(end), Availability({{0, 3}}, 0.5, "made", end),
          Availability({{0, 8}, {10, 2}}, 10, "made", end),
          Availability({{0, 8}, {63, 2}, {189, 0}}, 252, "made", end, 63),
          Availability({{0, 8}, {63, 2}, {126, 1}}, 126, "made", end, 63)}) {
      const std::string text = availability_csv(availability);
      const Availability again = parse_availability(text, "again", {}, end);
      EXPECT_EQ(again.changes(), availability.changes()) << text;
      EXPECT_EQ(again.length(), availability.length()) << text;
      if (availability.sample_gap()) {
        EXPECT_EQ(again.sample_gap(), availability.sample_gap()) << text;
      }
    }
  }
  EXPECT_EQ(availability_csv(two_minutes()), "seconds,count\n0,8\n60,0\n90,4\n120,\n");
  EXPECT_EQ(availability_csv({{{0, 8}, {2, 4}}, 3, "made", TraceEnd::error, 1}),
            "seconds,count\n0,8\n1,8\n2,4\n3,\n");
}

// Samples at regular intervals say that the last one lasts as long as the others. Where it does
// not, or changes came between them, the changes are written.
TEST(Availability, IsWrittenInSamplesWhereTheySayAllOfIt) {
  const auto csv = [](const std::vector<AvailabilityChange>& changes, double length) {
    return availability_csv({changes, length, "made", TraceEnd::error, 10});
  };
  EXPECT_EQ(csv({{0, 8}, {20, 4}}, 30), "seconds,count\n0,8\n10,8\n20,4\n30,\n");
  EXPECT_EQ(csv({{0, 8}, {20, 4}}, 35), "seconds,count\n0,8\n20,4\n35,\n");
  EXPECT_EQ(csv({{0, 8}, {25, 4}}, 30), "seconds,count\n0,8\n25,4\n30,\n");
}

TEST(Availability, HasASummary) {
  const AvailabilitySummary summary = summary_of(two_minutes());
  EXPECT_EQ(summary.fewest, 0);
  EXPECT_EQ(summary.most, 8);
  EXPECT_THAT(summary.mean, DoubleEq((8 * 60 + 4 * 30) / 120.0));
  EXPECT_EQ(summary.changes, 2);
  EXPECT_THAT(summary.changes_per_hour, DoubleEq(60));
  EXPECT_THAT(summary.share_at_zero, DoubleEq(0.25));
  EXPECT_THAT(summary.longest_at_zero, DoubleEq(30));
  // What holds for no time is not counted.
  EXPECT_EQ(summary_of({{{0, 8}, {10, 0}}, 10, "made"}).fewest, 8);
}

TEST(Availability, HasASummaryOfItsPrices) {
  EXPECT_FALSE(summary_of(two_minutes()).prices);
  const Availability priced({{0, 8}}, 100, "made", TraceEnd::error, {}, {{0, 2}, {75, 1}, {95, 5}});
  const std::optional<PriceSummary> prices = summary_of(priced).prices;
  ASSERT_TRUE(prices);
  EXPECT_EQ(prices->lowest, 1);
  EXPECT_EQ(prices->highest, 5);
  EXPECT_DOUBLE_EQ(prices->mean, (75 * 2 + 20 * 1 + 5 * 5) / 100.0);
  EXPECT_EQ(prices->changes, 2);
  EXPECT_EQ(prices->hours_without, 0);
}

TEST(AvailabilityDeathTest, HasNoTimeBeforeItsStart) {
  EXPECT_DEATH(static_cast<void>(two_minutes().at(-1)), "from 0 on");
}

TEST(Zones, AreOneOrSeveral) {
  const Zones one = two_minutes();
  EXPECT_FALSE(one.several());
  EXPECT_EQ(one.only().changes(), two_minutes().changes());
  EXPECT_EQ(one.source(), two_minutes().source());
  EXPECT_EQ(one.length(), 120);
  EXPECT_EQ(Zones(Availability({{0, 1}}, 0.5, "short")).length(), 0.5);
  const auto error = [](std::vector<Zone> zones) {
    return error_of([&] { return Zones(std::move(zones), "a cloud").only(); });
  };
  EXPECT_EQ(error({{"a", two_minutes()}}), "no error");
  EXPECT_THAT(error({{"a", two_minutes()}, {"b", two_minutes()}}),
              HasSubstr("a cloud: there are 2 zones; accepted: the devices of one"));
  EXPECT_THAT(error({}), HasSubstr("a cloud: there are no zones"));
  EXPECT_THAT(error({{"a", two_minutes()}, {"a", two_minutes()}}),
              HasSubstr("two zones are called a"));
  EXPECT_THAT(error({{"a/b", two_minutes()}}), HasSubstr("'a/b' is not the name"));
  const Availability held({{0, 1}}, 60, "held", TraceEnd::hold);
  EXPECT_THAT(error({{"a", two_minutes()}, {"b", held}}),
              HasSubstr("what follows the end of b differs from that of a"));
}

// Two devices for a minute, as a file has it that begins at `start`.
Zone recorded(const char* name, double start, TraceEnd end = TraceEnd::error, double length = 60) {
  return {name, Availability({{0, 2}}, length, name, end, {}, {{0, 3}, {30, 4}}, {.start = start})};
}

std::vector<AvailabilityChange> changes_of(const Zones& zones, std::size_t zone) {
  return zones.all()[zone].availability.changes();
}

TEST(ZonesOfOneClock, KeepTheTimesBetweenThem) {
  using Changes = std::vector<AvailabilityChange>;
  for (const double first : {0.0, 5.5, 1.7e9}) {
    const Zones zones({recorded("late", first + 3600), recorded("early", first)}, "a cloud");
    EXPECT_EQ(changes_of(zones, 0), (Changes{{0, 0}, {3600, 2}})) << first;
    EXPECT_EQ(changes_of(zones, 1), (Changes{{0, 2}}));
    const Availability& late = zones.all()[0].availability;
    EXPECT_EQ(late.length(), 3660);
    EXPECT_EQ(late.prices(), (std::vector<PriceChange>{{0, 3}, {3630, 4}}));
    EXPECT_EQ(late.origin().delay, 3600);
    const std::optional<PriceSummary> prices = summary_of(late).prices;
    ASSERT_TRUE(prices);
    EXPECT_DOUBLE_EQ(prices->mean, 3.5) << "of its own minute";
    EXPECT_EQ(prices->hours_without, 1);
    EXPECT_EQ(summary_of(zones.all()[1].availability).prices->hours_without, 0);
    EXPECT_EQ(zones.all()[1].availability.length(), 60) << "each ends where its file does";
    // Zones that are on their clock stay there.
    EXPECT_EQ(changes_of(Zones(zones.all(), "again"), 0), changes_of(zones, 0));
  }
}

TEST(ZonesOfOneClock, BeginAgainTogether) {
  const Zones zones(
      {recorded("late", 1.7e9 + 100, TraceEnd::cycle), recorded("early", 1.7e9, TraceEnd::cycle)},
      "a cloud");
  const Availability& late = zones.all()[0].availability;
  const Availability& early = zones.all()[1].availability;
  EXPECT_EQ(late.length(), 160);
  EXPECT_EQ(early.length(), 160);
  EXPECT_EQ(early.at(59), 2);
  EXPECT_EQ(early.at(60), 0) << "nothing is known of it until the round is over";
  EXPECT_EQ(early.at(160), 2);
  for (const Zones& these : {zones, Zones(zones.all(), "again")}) {
    const std::optional<PriceSummary> prices = summary_of(these.all()[1].availability).prices;
    ASSERT_TRUE(prices);
    EXPECT_DOUBLE_EQ(prices->mean, 3.5);
    EXPECT_DOUBLE_EQ(prices->hours_without * 3600, 100);
  }
  EXPECT_EQ(late.at(259), 0);
  EXPECT_EQ(late.at(260), 2);
  // Absolute times are of one clock even where they begin together.
  const Zones both(
      {recorded("long", 1.7e9, TraceEnd::cycle, 90), recorded("short", 1.7e9, TraceEnd::cycle)},
      "a cloud");
  EXPECT_EQ(both.all()[1].availability.length(), 90);
}

TEST(ZonesOfOneClock, AreNotThoseOfRelativeTimes) {
  // Files that all begin at their own 0, generators, and relative beside absolute times.
  const Zones own({recorded("a", 0, TraceEnd::cycle, 90), recorded("b", 0, TraceEnd::cycle)}, "c");
  EXPECT_EQ(own.all()[1].availability.length(), 60) << "each has a round of its own";
  const Zones mixed({recorded("absolute", 1.7e9),
                     recorded("relative", 0),
                     {"generated", Availability({{0, 1}}, 60, "made")}},
                    "c");
  for (std::size_t zone = 0; zone < 3; ++zone) {
    EXPECT_EQ(mixed.all()[zone].availability.origin().delay, 0);
    EXPECT_EQ(mixed.all()[zone].availability.length(), 60);
  }
  EXPECT_TRUE(has_absolute_times(mixed.all()[0].availability));
  EXPECT_FALSE(has_absolute_times(mixed.all()[1].availability));
}

}  // namespace
}  // namespace rubato
