// The laws of the lifetimes of machines, fitted and tested. tests/python/fit_test.py compares the
// fits of `rubato trace fit` with scipy's.

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/steps/availability.hpp>

#include "steps/trace/fit/fit_law.hpp"
#include "steps/trace/fit/fit_machines.hpp"
#include "steps/trace/fit/minimize.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::error_of;
using test::TempFolder;
using testing::HasSubstr;
using Lives = std::vector<MachineLife>;

constexpr double kNever = std::numeric_limits<double>::infinity();
const auto kNothing = [](std::int64_t) {};

LifeLaw law_of(std::string_view arguments) {
  Spec spec(fmt::format(":{}", arguments));
  LifeLaw law = LifeLaw::read(spec);
  spec.finish();
  return law;
}

// Lives at equal steps of probability, every `every`th of which is censored half way.
Lives lives_of(const LifeLaw& law, int count, int every) {
  Lives lives;
  for (int i = 0; i < count; ++i) {
    const double age = law.quantile((i + 0.5) / count);
    const bool censored = i % every == 0;
    lives.push_back({.hours = censored ? age / 2 : age, .preempted = !censored});
  }
  return lives;
}

constexpr std::array<std::string_view, 5> kLaws{
    "law=exponential,life=3", "law=exponential,life=30,deadline=24", "law=weibull,life=5,shape=0.6",
    "law=weibull,life=5,shape=2.5,deadline=6",
    "law=bathtub,a=0.4,tau1=1.2,tau2=0.8,b=24.1,deadline=24"};

TEST(LifeLaws, HaveQuantilesThatInvertTheirDistribution) {
  for (const std::string_view text : kLaws) {
    const LifeLaw law = law_of(text);
    EXPECT_EQ(law.quantile(0), 0) << text;
    double before = -1;
    for (int i = 0; i < 1000; ++i) {
      const double share = i / 1000.0;
      const double age = law.quantile(share);
      EXPECT_LE(age, law.deadline);
      EXPECT_GE(law.kind == LifeLawKind::bathtub ? age + law.deadline : age, before) << text;
      if (age < law.deadline && law.kind != LifeLawKind::bathtub) {
        EXPECT_NEAR(law.ended_by(age), share, 1e-12) << text;
      }
      before = age;
    }
  }
}

// The formula of the paper, without its value at 0, in the shares of lives that quantile() gives.
TEST(LifeLaws, HaveTheBathtubOfThePaper) {
  const LifeLaw law = law_of(kLaws.back());
  const auto formula = [](double t) {
    return 0.4 * (std::exp((t - 24.1) / 0.8) - std::exp(-24.1 / 0.8) + 1 - std::exp(-t / 1.2));
  };
  constexpr int kShares = 20000;
  std::vector<double> ages;
  for (int i = 0; i < kShares; ++i) ages.push_back(law.quantile((i + 0.5) / kShares));
  for (const double age : {0.1, 1.0, 3.0, 12.0, 22.0, 23.5, 23.99}) {
    EXPECT_NEAR(law.ended_by(age), formula(age), 1e-12);
    const auto ended = std::ranges::count_if(ages, [&](double other) { return other <= age; });
    EXPECT_NEAR(static_cast<double>(ended) / kShares, formula(age), 2.0 / kShares) << age;
  }
  // All that are left end at the deadline.
  EXPECT_EQ(law.quantile(1 - 0x1p-53), 24);
}

TEST(LifeLaws, AreReadAsTheyAreWritten) {
  for (const std::string_view text : kLaws) EXPECT_EQ(law_of(text).text(), text);
  const auto error = [](std::string_view text) {
    return error_of([&] { static_cast<void>(law_of(text)); });
  };
  EXPECT_EQ(error("law=bathtub"), "no error");
  EXPECT_THAT(error("law=bathtub,a=0.8,tau1=1,tau2=1,b=24,deadline=24"),
              HasSubstr("F(deadline) is 1.6"));
  EXPECT_THAT(error("law=bathtub,life=3,a=0.4,tau1=1,tau2=1,b=24,deadline=24"),
              HasSubstr("with law=exponential or law=weibull"));
  EXPECT_THAT(error("shape=2"), HasSubstr("accepted: with law=weibull"));
  EXPECT_THAT(error("law=weibull,tau2=2"), HasSubstr("accepted: with law=bathtub"));
}

TEST(Fit, CountsParametersInAic) {
  const auto aic = [](LifeLawKind kind) {
    return FittedLaw{.law = {.kind = kind}, .log_likelihood = -10}.aic();
  };
  EXPECT_EQ(aic(LifeLawKind::exponential), 22);
  EXPECT_EQ(aic(LifeLawKind::weibull), 24);
  EXPECT_EQ(aic(LifeLawKind::bathtub), 28);
}

TEST(Fit, FindsAMinimum) {
  const auto rosenbrock = [](const std::array<double, 2>& at) {
    const double valley = at[1] - at[0] * at[0];
    return (1 - at[0]) * (1 - at[0]) + 100 * valley * valley;
  };
  const auto found = detail::minimize(rosenbrock, std::array{-1.2, 1.0}, 0.5);
  EXPECT_NEAR(found[0], 1, 1e-5);
  EXPECT_NEAR(found[1], 1, 1e-5);
}

// The reference values are scipy's, from the likelihoods written down again.
TEST(Fit, IsThatOfScipy) {
  Lives lives;
  for (const double hours : {0.5, 1.25, 2.75, 3.5, 4.5, 8.0, 9.5, 12.0}) {
    lives.push_back({.hours = hours, .preempted = true});
  }
  for (const double hours : {2.0, 6.0, 15.0, 20.0}) lives.push_back({.hours = hours});
  const FittedLaw exponential = fit_law(LifeLawKind::exponential, kNever, lives);
  EXPECT_DOUBLE_EQ(exponential.law.life, 10.625);
  EXPECT_NEAR(exponential.log_likelihood, -26.905677718483844, 1e-12);
  EXPECT_NEAR(exponential.aic(), 2 + 2 * 26.905677718483844, 1e-12);
  const FittedLaw weibull = fit_law(LifeLawKind::weibull, kNever, lives);
  EXPECT_NEAR(weibull.law.shape, 0.98493625, 1e-7);
  EXPECT_NEAR(weibull.law.life, 10.63800884, 1e-6);
  EXPECT_NEAR(weibull.log_likelihood, -26.904311629515867, 1e-10);
  const FittedLaw bathtub = fit_law(LifeLawKind::bathtub, 16, lives);
  EXPECT_NEAR(bathtub.law.early, 0.785582997, 1e-4);
  EXPECT_NEAR(bathtub.law.tau1, 9.31504618, 1e-3);
  EXPECT_NEAR(bathtub.log_likelihood, -26.513544759251655, 1e-5);
  lives.erase(lives.begin() + 1, lives.begin() + 8);
  EXPECT_EQ(error_of([&] { static_cast<void>(fit_law(LifeLawKind::exponential, kNever, lives)); }),
            "1 preempted lives below the deadline; accepted: at least 2");
}

TEST(Fit, RecoversTheLawOfSimulatedLives) {
  for (const std::string_view text : kLaws) {
    const LifeLaw law = law_of(text);
    const Lives lives = lives_of(law, 5000, 5000);
    const FittedLaw found = fit_law(law.kind, law.deadline, lives);
    EXPECT_NEAR(found.law.life, law.life, 0.01 * law.life) << text;
    EXPECT_NEAR(found.law.shape, law.shape, 0.01 * law.shape) << text;
    EXPECT_NEAR(found.law.early, law.early, 0.005) << text;
    EXPECT_NEAR(found.law.late, law.late, 0.005) << text;
    EXPECT_NEAR(found.law.tau1, law.tau1, 0.02 * law.tau1) << text;
    EXPECT_NEAR(found.law.tau2, law.tau2, 0.02 * law.tau2) << text;
    EXPECT_LT(distance(found.law, lives), 0.005) << text;
  }
}

// The product limit of Kaplan and Meier by hand: at 1 one of six, at 3 two of four, at 5 one of two
// (the life that is censored at 5 was at risk); nothing is known beyond.
TEST(Fit, CountsCensoredLivesAsLongAsTheyAreSeen) {
  const Lives lives{{.hours = 3, .preempted = true}, {.hours = 1, .preempted = true}, {.hours = 2},
                    {.hours = 5, .preempted = true}, {.hours = 3, .preempted = true}, {.hours = 5}};
  const std::vector<EndedShare> points = ended_shares(lives);
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].hours, 1);
  EXPECT_NEAR(points[0].share, 1 - 5.0 / 6, 1e-15);
  EXPECT_EQ(points[1].hours, 3);
  EXPECT_NEAR(points[1].share, 1 - 5.0 / 12, 1e-15);
  EXPECT_EQ(points[2].hours, 5);
  EXPECT_NEAR(points[2].share, 1 - 5.0 / 24, 1e-15);
  // Just before 3 the law has 1 - exp(-1) where the lives have 1/6.
  EXPECT_NEAR(distance(law_of("life=3"), lives), 5.0 / 6 - std::exp(-1), 1e-12);
  // With a deadline, nothing from it on counts.
  EXPECT_NEAR(distance(law_of("life=3,deadline=2"), lives), 5.0 / 6 - std::exp(-2.0 / 3), 1e-12);
}

// If the law is right, p is below x in a share x of all tests, although parameters are estimated
// and a third of the lives is censored.
TEST(Fit, TestsAtTheLevelThatItSays) {
  for (const std::string_view text : {"law=exponential,life=2", "law=weibull,life=2,shape=0.6"}) {
    const LifeLaw law = law_of(text);
    constexpr int kTests = 200;
    int below_half = 0;
    int below_tenth = 0;
    // Numbers of the standard library, as rubato draws its own in the resamples.
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> share(0, 1);
    for (int test = 0; test < kTests; ++test) {
      std::array<Lives, 2> halves;
      for (Lives& half : halves) {
        for (int i = 0; i < 30; ++i) {
          const double age = law.quantile(share(random));
          const double seen = i % 3 == 0 ? 2.0 : 8.0;
          half.push_back({.hours = std::min(age, seen), .preempted = age <= seen});
        }
      }
      const LifeLaw fitted = fit_law(law.kind, kNever, halves[0]).law;
      const double p = test_law(fitted, halves[0], halves[1], 39, test, kNothing).p;
      below_half += p <= 0.5 ? 1 : 0;
      below_tenth += p <= 0.1 ? 1 : 0;
    }
    // Four standard deviations of a binomial number.
    EXPECT_NEAR(below_half, kTests * 0.5, 4 * std::sqrt(kTests * 0.25)) << text;
    EXPECT_NEAR(below_tenth, kTests * 0.1, 4 * std::sqrt(kTests * 0.09)) << text;
  }
}

TEST(Fit, RefutesAWrongLaw) {
  const Lives lives = lives_of(law_of("law=weibull,life=3,shape=0.4"), 200, 5);
  for (const auto& [kind, p] :
       {std::pair(LifeLawKind::exponential, 0.0), std::pair(LifeLawKind::weibull, 0.5)}) {
    const LifeLaw law = fit_law(kind, kNever, lives).law;
    const LawTest found = test_law(law, lives, lives, 99, 0, kNothing);
    if (p == 0) {
      EXPECT_EQ(found.p, 0.01);
    } else {
      EXPECT_GT(found.p, p);
    }
    EXPECT_EQ(found.distance, distance(law, lives));
    EXPECT_EQ(test_law(law, lives, lives, 99, 0, kNothing).p, found.p) << "of the same seed";
  }
}

TEST(Fit, CountsMachinesOverTime) {
  // One machine for all four hours, another from 1 to 2 and a third from 2 to 3.
  const Lives lives{{.hours = 4, .begin = 10.0},
                    {.hours = 1, .preempted = true, .begin = 11.0},
                    {.hours = 1, .preempted = true, .begin = 12.0},
                    {.hours = 9}};
  const auto counts = counts_of(lives);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->hours, 4);
  EXPECT_EQ(counts->start, 1);
  EXPECT_EQ(counts->most, 2);
  EXPECT_EQ(counts->mean, 1.5);
  // The third arrives as the second leaves: one arrival in the two hours with one missing.
  EXPECT_EQ(counts->wait, 2);
  EXPECT_EQ(counts->most_lost, 1);
  EXPECT_FALSE(counts_of(Lives{{.hours = 9}}));
  EXPECT_FALSE(counts_of(Lives{}));

  const Availability spot = generate_availability("steps:devices=8/16/4/8,seconds=3600");
  const MachineCounts of_devices = counts_of(spot);
  EXPECT_EQ(of_devices.machine, 4);
  EXPECT_EQ(of_devices.most, 4);
  EXPECT_EQ(of_devices.mean, 2.25);
  EXPECT_DOUBLE_EQ(*of_devices.wait, 7.0 / 3);
  EXPECT_EQ(of_devices.most_lost, 3);
  const Lives between = hours_between_losses(spot, of_devices);
  ASSERT_EQ(between.size(), 2U);
  EXPECT_EQ(between[0].hours, 6);
  EXPECT_TRUE(between[0].preempted);
  EXPECT_EQ(between[1].hours, 3);
  EXPECT_FALSE(between[1].preempted);
}

// A generator's availability leads back to its text.
TEST(Fit, RecoversTheGeneratorOfAnAvailability) {
  const Availability spot =
      generate_availability("spot:most=16,wait=1,life=3,bulk=3,machine=8,hours=40000,seed=2");
  const MachineCounts counts = counts_of(spot);
  const LifeLaw law =
      fit_law(LifeLawKind::exponential, kNever, hours_between_losses(spot, counts)).law;
  const std::string text = spot_text(law, counts, 24, 7);
  EXPECT_THAT(text, testing::MatchesRegex("spot:most=16,start=16,machine=8,wait=(0.9|1.0)[0-9]*,"
                                          "life=(2.9|3.0)[0-9]*,bulk=3,hours=24,seed=7"));
}

TEST(Fit, ReadsLivesOfMachines) {
  const TempFolder folder;
  const auto read = [&](const std::string& text) {
    folder.write("lives.txt", text);
    return std::get<Lives>(read_machines(folder.path() / "lives.txt", {}, {}));
  };
  const Lives json = read(
      R"({"seconds": 5400, "preempted": "2019-03-25T13:53:13Z", "inserted": "2019-03-25T12:23:13Z"}
{"seconds": 1.8, "preempted": null, "inserted": null}
{"seconds": 7200, "preempted": false, "inserted": "2019-03-25T05:23:13.5-08:30", "zone": "a"}
)");
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0].hours, 1.5);
  EXPECT_TRUE(json[0].preempted);
  EXPECT_EQ(json[1].hours, 0.0005);
  EXPECT_FALSE(json[1].preempted);
  EXPECT_FALSE(json[1].begin);
  EXPECT_FALSE(json[2].preempted);
  EXPECT_NEAR(*json[2].begin - *json[0].begin, 1.5 + 0.5 / 3600, 1e-9);

  const Lives events = read("0,add,b\n0,add,a\n1800000,remove,a\n3600000,add,a\n7200000,add,c\n");
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].hours, 2);
  EXPECT_FALSE(events[0].preempted);
  EXPECT_EQ(events[1].hours, 0.5);
  EXPECT_TRUE(events[1].preempted);
  EXPECT_EQ(events[2].begin, 1);
  EXPECT_EQ(events[3].hours, 0);

  const auto error = [&](const std::string& text) {
    return error_of([&] { static_cast<void>(read(text)); });
  };
  EXPECT_THAT(error("{\"preempted\": null}\n"), HasSubstr("lives.txt:1: no 'seconds' from 0"));
  EXPECT_THAT(error("{\"seconds\": -1, \"preempted\": null}"), HasSubstr("no 'seconds' from 0"));
  EXPECT_THAT(error("{\"seconds\": 1}"), HasSubstr("lives.txt:1: no 'preempted'"));
  EXPECT_THAT(error("{}\n[1]\n"), HasSubstr("lives.txt:1: no 'seconds'"));
  EXPECT_THAT(error("{\"seconds\": 1, \"preempted\": 1}\n[1]\n"),
              HasSubstr("lives.txt:2: '[1]' is not a life"));
  for (const std::string_view time :
       {"2019-03-25", "2019-02-30T12:23:13Z", "2019-03-25T12:23:13", "2019-03-25T12:23:13+1:00",
        "2019-03-25T12:23:13Z ", "2019-03-25T1a:23:13Z", "2019-03-25T-1:23:13Z", ""}) {
    EXPECT_THAT(
        error(fmt::format(R"({{"seconds": 1, "preempted": null, "inserted": "{}"}})", time)),
        HasSubstr("'inserted' is "))
        << time;
  }
}

// The acceptance of the fit: what it makes of half of Google's machines is like the other half.
TEST(Fit, IsLikeTheHalfThatItHasNotSeen) {
  const std::filesystem::path file = RUBATO_SHARED_DIR "/data/traces/vm_lifetimes.jsonl";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file.string();
  const Lives all = std::get<Lives>(read_machines(file, {}, {}));
  ASSERT_EQ(all.size(), 1442U);
  std::array<Lives, 2> halves;
  for (std::size_t i = 0; i < all.size(); ++i) halves.at(i % 2).push_back(all[i]);
  const LifeLaw law = fit_law(LifeLawKind::bathtub, 24, halves[0]).law.rounded();
  const LawTest found = test_law(law, halves[0], halves[1], 49, 0, kNothing);
  EXPECT_LT(found.distance, 0.04);
  EXPECT_GT(found.p, 0.1);
  // A law that cannot be right is seen.
  const LifeLaw exponential = fit_law(LifeLawKind::exponential, 24, halves[0]).law;
  EXPECT_EQ(test_law(exponential, halves[0], halves[1], 49, 0, kNothing).p, 0.02);

  // One machine after the other, so that the times with a device are the lives that are made.
  const Availability made = generate_availability(
      fmt::format("machines:most=1,wait=1,{},hours=87660,seed=1", law.text()));
  Lives lives;
  for (std::size_t i = 0; i + 1 < made.changes().size(); ++i) {
    if (made.changes()[i].devices == 0) continue;
    lives.push_back({.hours = (made.changes()[i + 1].seconds - made.changes()[i].seconds) / 3600,
                     .preempted = true});
  }
  EXPECT_GT(lives.size(), 4000U);
  EXPECT_LT(distance(law, lives), 0.02);
  double largest = 0;
  const auto seen = ended_shares(lives_until(24, halves[1]));
  const auto generated = ended_shares(lives_until(24, lives));
  for (const EndedShare& point : seen) {
    const auto after = std::ranges::upper_bound(generated, point.hours, {}, &EndedShare::hours);
    const double share = after == generated.begin() ? 0 : std::prev(after)->share;
    largest = std::max(largest, std::abs(share - point.share));
  }
  EXPECT_LT(largest, 0.05);
}

}  // namespace
}  // namespace rubato
