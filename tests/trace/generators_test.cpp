#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/base/spec.hpp>
#include <rubato/steps/availability.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/sizes.hpp"

namespace rubato {
namespace {

using Changes = std::vector<AvailabilityChange>;

std::string error_generating(const std::string& text) {
  return error_of([&] { return generate_availability(text); });
}

TEST(Generators, MakeWhatIsRegular) {
  const Availability constant = generate_availability("constant:devices=3,hours=0.5");
  EXPECT_EQ(constant.changes(), (Changes{{0, 3}}));
  EXPECT_EQ(constant.length(), 1800);
  EXPECT_EQ(constant.source(), "constant:devices=3,hours=0.5");
  const Availability steps = generate_availability("steps:devices=2/4,seconds=10/20,cycles=2");
  EXPECT_EQ(steps.changes(), (Changes{{0, 2}, {10, 4}, {30, 2}, {40, 4}}));
  EXPECT_EQ(steps.length(), 60);
  EXPECT_EQ(generate_availability("steps:devices=2/4,seconds=10").length(), 20);
  const Availability saw =
      generate_availability("saw:high=9,low=1,levels=5,top=1,between=2,bottom=3,cycles=1");
  EXPECT_EQ(saw.changes(),
            (Changes{{0, 9}, {1, 7}, {3, 5}, {5, 3}, {7, 1}, {10, 3}, {12, 5}, {14, 7}}));
  EXPECT_EQ(saw.length(), 16);
  EXPECT_EQ(generate_availability("saw:levels=2,high=2,low=0,top=5,bottom=5,cycles=1").changes(),
            (Changes{{0, 2}, {5, 0}}));
}

TEST(Generators, FollowTheHoursOfTheDay) {
  const Availability daily =
      generate_availability("daily:low=10,high=30,peak=6,every=3600,noise=0");
  EXPECT_EQ(daily.at(6 * 3600), 30);
  EXPECT_EQ(daily.at(18 * 3600), 10);
  EXPECT_EQ(daily.at(0), 20);
  EXPECT_EQ(daily.sample_gap(), 3600);
  const AvailabilitySummary noisy =
      summary_of(generate_availability("daily:low=10,high=30,noise=5,seed=2,hours=240"));
  EXPECT_GE(noisy.fewest, 10);
  EXPECT_LE(noisy.most, 30);
  EXPECT_THAT(noisy.mean, DoubleNear(20, 1));
}

TEST(Generators, WalkWithinTheirBounds) {
  const Availability walk =
      generate_availability("walk:start=5,low=2,high=8,move=2,every=60,hours=48,seed=1");
  const AvailabilitySummary summary = summary_of(walk);
  EXPECT_EQ(walk.at(0), 5);
  EXPECT_EQ(summary.fewest, 2);
  EXPECT_EQ(summary.most, 8);
  EXPECT_THAT(summary.mean, DoubleNear(5, 0.5));
  for (std::size_t i = 1; i < walk.changes().size(); ++i) {
    EXPECT_LE(std::abs(walk.changes()[i].devices - walk.changes()[i - 1].devices), 2);
  }
}

// What has come back from one bound and is beyond the other ends at a bound.
TEST(Generators, WalkNoFartherThanTheirBounds) {
  for (const char* text : {"walk:start=1,low=0,high=2,move=5,every=60,hours=100,seed=1",
                           "walk:start=7,low=7,high=8,move=100,every=60,hours=100,seed=2"}) {
    const Availability walk = generate_availability(text);
    const AvailabilitySummary summary = summary_of(walk);
    EXPECT_EQ(summary.fewest, walk.at(0) == 1 ? 0 : 7) << text;
    EXPECT_EQ(summary.most, walk.at(0) == 1 ? 2 : 8) << text;
  }
}

// What would go beyond a bound comes back from it by as much. With three values and moves of up to
// two, one half of the time is spent on the middle one in the long run, and a quarter on each
// bound; a walk that stopped at its bounds would spend a fifth there.
TEST(Generators, WalkBackFromTheirBounds) {
  const Availability walk =
      generate_availability("walk:start=1,low=0,high=2,move=2,every=60,hours=1000,seed=3");
  std::array<double, 3> minutes{};
  for (int minute = 0; minute < 60000; ++minute) {
    minutes.at(static_cast<std::size_t>(*walk.at(60.0 * minute))) += 1;
  }
  EXPECT_NEAR(minutes[0] / 60000, 0.25, 0.01);
  EXPECT_NEAR(minutes[1] / 60000, 0.5, 0.01);
  EXPECT_NEAR(minutes[2] / 60000, 0.25, 0.01);
}

struct SpotMarket {
  std::int64_t most;
  std::int64_t bulk;
  double wait;
  double life;
};

// The share of the devices that is there in the long run, as docs/traces.md has it: as often as it
// becomes more than n devices, it becomes n or fewer.
double share_of(const SpotMarket& spot) {
  const auto bulk = static_cast<double>(spot.bulk);
  std::vector<double> times(static_cast<std::size_t>(spot.most) + 1, 0.0);
  times.back() = 1;
  double sum = 1;
  double there = static_cast<double>(spot.most);
  for (std::int64_t n = spot.most - 1; n >= 0; --n) {
    double falls = 0;
    for (std::int64_t k = n + 1; k <= std::min(spot.most, n + spot.bulk); ++k) {
      falls += times[static_cast<std::size_t>(k)] * static_cast<double>(k) /
               (spot.life * (bulk + 1) / 2) * (bulk + 1 - static_cast<double>(k - n)) / bulk;
    }
    const double time = falls * spot.wait / static_cast<double>(spot.most - n);
    times[static_cast<std::size_t>(n)] = time;
    sum += time;
    there += time * static_cast<double>(n);
  }
  return there / sum / static_cast<double>(spot.most);
}

// Where bulks are larger than what there is, too.
TEST(Generators, MakeASpotMarketAsDocumented) {
  std::ifstream document(RUBATO_TRACES_MD);
  const std::regex row(R"(\| `(spot[^`]*)` \| ([0-9.]+) \| ([0-9.]+) \|)");
  int rows = 0;
  for (std::string line; std::getline(document, line);) {
    std::smatch cells;
    if (!std::regex_match(line, cells, row)) continue;
    ++rows;
    const std::string text = cells[1];
    Spec spec(text);
    const SpotMarket spot{.most = spec.whole("most", 32, 1, kMaxCores),
                          .bulk = spec.whole("bulk", 4, 1, kMaxCores),
                          .wait = spec.real("wait", 0.5, kPositive),
                          .life = spec.real("life", 4, kPositive)};
    EXPECT_EQ(fmt::format("| `{}` | {:.3f} | {:.3f} |", text, share_of(spot),
                          spot.life / (spot.life + spot.wait)),
              line);
    const Availability made = generate_availability(
        fmt::format("{}{}hours=40000,seed=1", text, text == "spot" ? ":" : ","));
    EXPECT_NEAR(summary_of(made).mean / static_cast<double>(spot.most), share_of(spot), 0.01)
        << text;
  }
  EXPECT_EQ(rows, 5);
}

// In the long run a device is there for life / (life + wait) of the time.
TEST(Generators, MakeASpotMarket) {
  const Availability spot =
      generate_availability("spot:most=100,wait=1,life=3,bulk=1,hours=2000,seed=7");
  EXPECT_EQ(spot.at(0), 100);
  EXPECT_THAT(summary_of(spot).mean, DoubleNear(75, 1));
  const Availability bulky =
      generate_availability("spot:most=100,start=0,wait=1,life=3,bulk=9,hours=2000,seed=7");
  EXPECT_EQ(bulky.at(0), 0);
  EXPECT_THAT(summary_of(bulky).mean, DoubleNear(75, 2));
  EXPECT_LT(summary_of(bulky).fewest, summary_of(spot).fewest);
  EXPECT_LE(summary_of(bulky).most, 100);
}

// In the long run a machine is there for its mean life / (mean life + wait) of the time, whatever
// the law. Weibull's mean is life gamma(1 + 1 / shape), and a deadline of an exponential life cuts
// its mean to life (1 - exp(-deadline / life)).
TEST(Generators, MakeMachinesThatLiveByTheirLaw) {
  for (const auto& [law, mean] : std::vector<std::pair<std::string, double>>{
           {"life=3", 3},
           {"law=weibull,life=2,shape=0.5", 4},
           {"life=6,deadline=3", 6 * -std::expm1(-0.5)},
           // Shares of 0.4 at 1 hour on average and of 0.6 at 24.
           {"law=bathtub,a=0.4,tau1=1,tau2=0.001,b=100,deadline=24", 0.4 * 1 + 0.6 * 24}}) {
    const Availability made = generate_availability(
        fmt::format("machines:most=50,machine=8,wait=1,{},hours=8760,seed=3", law));
    EXPECT_EQ(made.at(0), 400);
    EXPECT_NEAR(summary_of(made).mean / 400, mean / (mean + 1), 0.01) << law;
    for (const AvailabilityChange& change : made.changes()) EXPECT_EQ(change.devices % 8, 0);
  }
  EXPECT_EQ(generate_availability("machines:start=2,machine=4,seed=1").at(0), 8);
}

// Here something changes in every second, and so also in the one with which the trace ends.
TEST(Generators, MakeNoMachinesAtTheEnd) {
  const Availability made =
      generate_availability("machines:most=1000,wait=0.01,life=0.01,hours=0.01,seed=1");
  EXPECT_EQ(made.length(), 36);
  EXPECT_EQ(made.changes().back().seconds, 35);
}

TEST(Generators, MakeMachinesOfASpotMarket) {
  const Changes devices = generate_availability("spot:most=8,seed=5").changes();
  Changes machines = generate_availability("spot:most=8,machine=4,seed=5").changes();
  for (AvailabilityChange& change : machines) change.devices /= 4;
  EXPECT_EQ(machines, devices);
}

TEST(Generators, MakeTheSameOfTheSameSeed) {
  for (const std::string name : {"walk", "spot", "machines:life=3", "daily:noise=3"}) {
    const std::string more = name + (name.find(':') == std::string::npos ? ":" : ",");
    EXPECT_EQ(generate_availability(more + "seed=1").changes(),
              generate_availability(more + "seed=1").changes());
    EXPECT_NE(generate_availability(more + "seed=1").changes(),
              generate_availability(more + "seed=2").changes());
    EXPECT_EQ(generate_availability(name).changes(),
              generate_availability(more + "seed=0").changes());
  }
}

// On any machine, and in any version: what was trained with a seed is trained again.
TEST(Generators, MakeTheSameForEver) {
  const auto beginning = [](const std::string& text) {
    Changes changes = generate_availability(text).changes();
    changes.resize(4);
    return changes;
  };
  EXPECT_EQ(beginning("walk:seed=5"), (Changes{{0, 16}, {300, 17}, {600, 19}, {900, 18}}));
  EXPECT_EQ(beginning("spot:seed=5"), (Changes{{0, 32}, {386, 29}, {510, 27}, {580, 28}}));
  EXPECT_EQ(beginning("machines:seed=5,law=weibull,life=2,shape=0.5"),
            (Changes{{0, 8}, {154, 7}, {235, 6}, {256, 5}}));
  EXPECT_EQ(beginning("machines:seed=5,law=bathtub,a=0.4,tau1=1,tau2=0.8,b=24,deadline=24"),
            (Changes{{0, 8}, {1494, 7}, {1918, 6}, {2019, 5}}));
  EXPECT_EQ(beginning("daily:seed=5,noise=4"),
            (Changes{{0, 56}, {600, 53}, {1200, 54}, {1800, 58}}));
}

TEST(Generators, RefuseWhatCannotBe) {
  EXPECT_EQ(error_generating("spott:seed=1"),
            "unknown generator 'spott'; did you mean 'spot'? accepted: constant, steps, saw, walk, "
            "spot, machines, daily");
  EXPECT_THAT(error_generating("spot:sed=1"), HasSubstr("did you mean 'seed'?"));
  EXPECT_THAT(error_generating("constant:devices=-1"), HasSubstr("constant: devices: '-1'"));
  EXPECT_THAT(error_generating("constant:devices=1.5"), HasSubstr("is not a whole number"));
  EXPECT_THAT(error_generating("constant:hours=0"), HasSubstr("a number above 0 and up to 87660"));
  EXPECT_THAT(error_generating("constant:hours=87661"), HasSubstr("is out of range"));
  EXPECT_EQ(error_generating("constant:hours=87660"), "no error");
  EXPECT_THAT(error_generating("steps:devices=1/2/3,seconds=1/2"),
              HasSubstr("2 for 3 numbers of devices; accepted: 1 or 3"));
  EXPECT_THAT(error_generating("steps:cycles=10000000"), HasSubstr("accepted: up to 10000000"));
  EXPECT_THAT(error_generating("saw:low=64"), HasSubstr("64 is not below 64"));
  EXPECT_THAT(error_generating("saw:levels=2,between=5"), HasSubstr("levels=2 there is none"));
  EXPECT_THAT(error_generating("walk:start=99"), HasSubstr("accepted: 0 to 32"));
  EXPECT_THAT(error_generating("walk:hours=87660,every=1"), HasSubstr("1 s is too often"));
  EXPECT_THAT(error_generating("daily:seed=4,noise=0"), HasSubstr("accepted: with noise=N"));
  EXPECT_THAT(error_generating("daily:low=65"), HasSubstr("65 is above 64"));
  EXPECT_THAT(error_generating("spot:start=33"), HasSubstr("33 is above 32"));
  EXPECT_THAT(error_generating("spot:most=1000,machine=2000"),
              HasSubstr("2000 devices in each of 1000 machines; accepted: up to 1048576 in all"));
  EXPECT_THAT(error_generating("machines:start=9"), HasSubstr("9 is above 8"));
}

// Each of them was drawn before.
TEST(Generators, RefuseTooManyEvents) {
  if (!test::cases(false, true)) GTEST_SKIP() << "takes seconds";
  EXPECT_THAT(error_generating("spot:most=1000000,wait=0.001,life=0.001"),
              HasSubstr("more than 10000000 arrivals and preemptions"));
}

TEST(Generators, AreKnownByTheirNames) {
  EXPECT_TRUE(is_generator("spot"));
  EXPECT_TRUE(is_generator("spot:seed=1"));
  EXPECT_FALSE(is_generator("spot.csv"));
  EXPECT_FALSE(is_generator("./spot"));
  EXPECT_EQ(availability_generators().size(), 7U);
}

}  // namespace
}  // namespace rubato
