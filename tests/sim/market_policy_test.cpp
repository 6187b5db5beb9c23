#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/steps/modelled_time.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// A spot market and on-demand devices at twelve seconds, for a training that should end after 100
// s.
MarketView view_with(const MarketView::Place& spot, double on_demand_rest) {
  return {.seconds = 12,
          .deadline = 100,
          .slack = 5,
          .places = {spot,
                     {.on_demand = true,
                      .devices = 4,
                      .price = 3,
                      .rest_seconds = on_demand_rest,
                      .enter_seconds = 10}},
          .here = {}};
}

constexpr MarketView::Place kSpot{
    .devices = 4, .price = 1, .rest_seconds = 60, .enter_seconds = 10, .mean_stay = 1000};
constexpr MarketView::Place kNoSpot{.price = 1};

std::optional<std::size_t> place_of(const std::string& policy, const MarketView& view) {
  return make_market_policy(policy)->choose(view).place;
}

TEST(MarketPolicies, TakeSpotDevicesWhereThereAreSome) {
  for (const char* const policy : {"spot", "greedy", "uniform", "lifetimes", "late:few=2"}) {
    EXPECT_EQ(place_of(policy, view_with(kSpot, 60)), 0U) << policy;
  }
  EXPECT_EQ(place_of("on-demand", view_with(kSpot, 60)), 1U);
}

TEST(MarketPolicies, WaitUntilOnDemandDevicesAreOnlyJustInTime) {
  const auto greedy = make_market_policy("greedy");
  // They take until 72 s, so they have to be taken at 100 - 60 - 5 s.
  EXPECT_EQ(greedy->choose(view_with(kNoSpot, 60)).place, std::nullopt);
  EXPECT_EQ(greedy->choose(view_with(kNoSpot, 60)).again, 35);
  EXPECT_EQ(greedy->choose(view_with(kNoSpot, 83)).place, 1U);
  // Nothing but on-demand devices is sure to be in time then.
  EXPECT_EQ(greedy->choose(view_with(kSpot, 83)).place, 1U);
  MarketView there = view_with(kSpot, 20);
  there.here = 1;
  EXPECT_EQ(greedy->choose(there).place, 1U);
}

TEST(MarketPolicies, ProgressUniformly) {
  const auto uniform = make_market_policy("uniform");
  MarketView view = view_with(kNoSpot, 60);
  // 20 % are done after 12 % of the time.
  view.share = 0.2;
  EXPECT_EQ(uniform->choose(view).place, std::nullopt);
  EXPECT_EQ(uniform->choose(view).again, 20);
  view.share = 0.12;
  EXPECT_EQ(uniform->choose(view).place, 1U);
  // From there it goes back once it is ahead by twice the time to enter.
  MarketView there = view_with(kSpot, 40);
  there.here = 1;
  there.share = 0.31;
  EXPECT_EQ(uniform->choose(there).place, 1U);
  there.share = 0.33;
  EXPECT_EQ(uniform->choose(there).place, 0U);
}

TEST(MarketPolicies, ExpectDevicesToStayAsLongAsTheyHave) {
  MarketView view = view_with(kSpot, 60);
  view.share = 0.2;
  // At a third of the price, entering again after each 4 s costs 60 (1 + 10 / 4), more than three
  // times 60.
  view.places[0].mean_stay = 4;
  EXPECT_EQ(place_of("lifetimes", view), std::nullopt);
  view.places[0].mean_stay = 8;
  EXPECT_EQ(place_of("lifetimes", view), 0U);
}

TEST(MarketPolicies, StayWhereTheyAreAmongEqualZones) {
  MarketView view = view_with(kSpot, 60);
  view.places.insert(view.places.begin() + 1, kSpot);
  for (const char* const policy : {"spot", "greedy", "uniform"}) {
    view.here = 1;
    EXPECT_EQ(place_of(policy, view), 1U) << policy;
    view.here = 0;
    EXPECT_EQ(place_of(policy, view), 0U) << policy;
  }
}

TEST(MarketPolicies, BuyLate) {
  const auto late = make_market_policy("late:few=2,from=0.25");
  MarketView view = view_with(kSpot, 60);
  view.share = 0.24;
  EXPECT_EQ(late->choose(view).most, 2);
  view.share = 0.25;
  EXPECT_EQ(late->choose(view).most, std::nullopt);
}

TEST(MarketPolicies, AreKnownByTheirNames) {
  const auto error = [](const std::string& text) {
    return error_of([&] { return make_market_policy(text); });
  };
  EXPECT_THAT(error("greedi"), HasSubstr("greedy"));
  EXPECT_THAT(error("late"), HasSubstr("few"));
  EXPECT_THAT(error("uniform:few=3"), HasSubstr("few"));
  EXPECT_EQ(market_policies().size(), 6U);
}

TEST(MarketPolicies, ForeseeMoves) {
  // The second zone has twice the devices.
  MarketView view = view_with(kSpot, 60);
  view.here = 0;
  view.places[0].enter_seconds = 0;
  view.places.insert(
      view.places.begin() + 1,
      {.devices = 8, .price = 1, .rest_seconds = 30, .enter_seconds = 18, .move_seconds = 8});
  EXPECT_EQ(place_of("spot", view), 1U);
  view.places[1].rest_seconds = 61;
  EXPECT_EQ(place_of("spot", view), 0U);
  // For the rest, the first zone costs 4 x 60 / 3600 of money, the second 8 x 29 / 3600 and the
  // move.
  view.places[1].rest_seconds = 29;
  EXPECT_EQ(place_of("lifetimes", view), 1U);
  view.places[1].move_money = 0.01;
  EXPECT_EQ(place_of("lifetimes", view), 0U);
  // At half the price, with a loss every 10 s, each of which costs entering without the move.
  view.places[1] = {.devices = 8,
                    .price = 0.5,
                    .rest_seconds = 29,
                    .enter_seconds = 18,
                    .mean_stay = 10,
                    .move_seconds = 8};
  EXPECT_EQ(place_of("lifetimes", view), 1U);
}

// Zones in which a training of 60 steps of 24 minibatches has to end in time.
struct Race {
  std::vector<std::vector<AvailabilityChange>> zones;
  ClusterModel cluster{.substep_seconds = 1};
  double deadline = 0;
};

constexpr std::int64_t kRaceSteps = 60;
constexpr std::int64_t kRaceMinibatches = 24;

Race random_race(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  Race race;
  race.zones.resize(1 + seed % 3);
  for (std::vector<AvailabilityChange>& changes : race.zones) {
    for (std::int64_t at = 0; at < 3000; at += 1 + below(90)) {
      changes.push_back({static_cast<double>(at), below(2) == 0 ? 0 : below(13)});
    }
  }
  MarketModel& market = race.cluster.market;
  market.provision_seconds = static_cast<double>(below(10));
  market.join_seconds = static_cast<double>(below(10));
  market.notice_seconds = static_cast<double>(below(2) * below(12));
  market.loses = below(2) == 0 ? Loses::step : Loses::checkpoint;
  market.on_demand_devices = 4;
  market.on_demand_price = 3600;
  race.cluster.price.constant = 1200;
  race.cluster.restart_seconds = static_cast<double>(below(6));
  race.cluster.checkpoint_steps = 1 + below(8);
  race.cluster.checkpoint_seconds = static_cast<double>(below(6));
  if (race.zones.size() > 1) {
    market.move.latency_seconds = static_cast<double>(below(20));
    market.move.egress_price = 1e9;
    market.move.state_bytes = below(3);
  }
  // On demand, a step takes 6 s.
  race.deadline = static_cast<double>(kRaceSteps * 6 + 60 + below(600)) +
                  static_cast<double>(kRaceSteps / race.cluster.checkpoint_steps) *
                      race.cluster.checkpoint_seconds;
  return race;
}

ClockTime time_of(const Race& race, const std::string& policy) {
  std::vector<Zone> zones;
  for (const std::vector<AvailabilityChange>& changes : race.zones) {
    zones.push_back({.name = fmt::format("zone {}", zones.size()),
                     .availability = {changes, 3000, "cloud", TraceEnd::cycle}});
  }
  const auto make = [&] {
    return std::make_unique<ClockedSource>(
        Zones(zones, "clouds"),
        [](std::int64_t devices, const SourceProgress&) -> std::optional<TraceStep> {
          if (devices < 4) return std::nullopt;
          return TraceStep{.batch_size = kRaceMinibatches, .cores = devices};
        },
        ClockOptions{.cluster = race.cluster,
                     .minibatch_size = 1,
                     .policy = policy,
                     .max_batch = kRaceMinibatches,
                     .market = make_market_policy(policy),
                     .deadline_seconds = race.deadline});
  };
  auto source = make();
  for (std::int64_t i = 0; i < kRaceSteps; ++i) {
    const SourceProgress progress{.step = StepIndex{i},
                                  .epoch = {},
                                  .samples = i * kRaceMinibatches,
                                  .all_samples = kRaceSteps * kRaceMinibatches};
    const auto step = source->next(progress);
    if (!step) break;
    source->taken(*step, progress);
    if (i != kRaceSteps / 2) continue;
    // It goes on from a state as if nothing had happened.
    auto again = make();
    load_state(*again, state_of(*source, i + 1), i + 1);
    source = std::move(again);
  }
  return source->time();
}

TEST(MarketPolicies, EndInTime) {
  double on_demand_money = 0;
  double uniform_money = 0;
  double greedy_money = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Race race = random_race(seed);
    for (const char* const policy : {"on-demand", "greedy", "uniform", "lifetimes"}) {
      const ClockTime time = time_of(race, policy);
      EXPECT_LE(time.seconds, race.deadline) << policy << ' ' << seed;
    }
    on_demand_money += time_of(race, "on-demand").money;
    uniform_money += time_of(race, "uniform").money;
    greedy_money += time_of(race, "greedy").money;
  }
  EXPECT_LT(uniform_money, on_demand_money);
  EXPECT_LT(greedy_money, on_demand_money);
}

TEST(MarketPolicies, AreRefusedWithoutWhatTheyNeed) {
  const auto error = [](Race race, const std::string& policy) {
    return error_of([&] { return time_of(race, policy); });
  };
  const Race good = random_race(1);
  Race without_devices = good;
  without_devices.cluster.market.on_demand_devices = 0;
  Race without_deadline = good;
  without_deadline.deadline = std::numeric_limits<double>::infinity();
  for (const char* const policy : {"greedy", "uniform", "lifetimes"}) {
    EXPECT_EQ(error(good, policy), "no error");
    EXPECT_EQ(error(without_devices, policy),
              "market: there are no on-demand devices; accepted: with on_demand_devices");
    EXPECT_EQ(error(without_deadline, policy),
              "market: nothing has to end in time; accepted: with deadline_seconds");
  }
  EXPECT_EQ(error(without_deadline, "on-demand"), "no error");
  EXPECT_EQ(error(without_devices, "spot"), "no error");
}

TEST(MarketPolicies, PayWhereTheyAre) {
  const Race race{
      .zones = {{{0, 4}, {15, 0}}}, .cluster = random_race(1).cluster, .deadline = 2000};
  Race simple = race;
  simple.cluster.market = {.on_demand_devices = 4, .on_demand_price = 3600};
  simple.cluster.restart_seconds = 0;
  simple.cluster.checkpoint_seconds = 0;
  // Two steps of 6 s on four spot devices at a third of the price, and a third that is lost after
  // three seconds; then 58 steps on demand.
  const ClockTime time = time_of(simple, "uniform");
  EXPECT_NEAR(time.lost_seconds, 3, 1e-9);
  EXPECT_GT(time.idle_seconds, 0);
  EXPECT_NEAR(time.money, 4 * (15.0 / 3 + 58 * 6), 1e-6);
}

}  // namespace
}  // namespace rubato
