// The optimum is compared with all sequences of choices, each simulated from the beginning.

#include "steps/sim/optimum.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/modelled_time.hpp>

#include "steps/sim/optimum_bound.hpp"
#include "support/sizes.hpp"

namespace rubato::optimum_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// A device costs so many units in a second, so that money is a whole number.
constexpr double kUnit = 3600;

// All times are whole seconds.
struct Case {
  std::vector<AvailabilityChange> changes{};
  std::vector<PriceChange> prices{};
  // Those of a second zone; empty if there is none.
  std::vector<AvailabilityChange> far_changes{};
  double length = 60;
  TraceEnd end = TraceEnd::hold;
  ClusterModel cluster{.substep_seconds = 1};
  OnIdle on_idle = OnIdle::pause;
  std::int64_t fewest = 1;
  // Minibatches, of one sample, of a step: for each device, or of all.
  std::int64_t of_device = 0;
  std::int64_t of_step = 12;
  double deadline = kNever;
  PlanOptions plan{.minibatch_size = 1, .epochs = 1};
};

constexpr std::int64_t kMostDevices = 6;

Zones zones_of(const Case& of) {
  const auto zone = [&](const std::vector<AvailabilityChange>& changes) {
    return Availability(changes, of.length, "cloud", of.end, {}, of.prices);
  };
  if (of.far_changes.empty()) return zone(of.changes);
  return {{{"near", zone(of.changes)}, {"far", zone(of.far_changes)}}, "clouds"};
}

MakeClock maker_of(const Case& of) {
  return [of](std::shared_ptr<const MarketPolicy> policy) {
    return std::make_unique<ClockedSource>(
        zones_of(of),
        [of](std::int64_t devices, const SourceProgress&) -> std::optional<TraceStep> {
          if (devices < of.fewest) return std::nullopt;
          return TraceStep{.batch_size = of.of_device > 0 ? of.of_device * devices : of.of_step,
                           .cores = devices};
        },
        ClockOptions{.cluster = of.cluster,
                     .minibatch_size = 1,
                     .on_idle = of.on_idle,
                     .max_batch = std::max(of.of_step, of.of_device * kMostDevices),
                     .market = std::move(policy),
                     .deadline_seconds = of.deadline});
  };
}

Case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  const auto seconds = [&](std::uint64_t end) { return static_cast<double>(below(end)); };
  const auto changes = [&] {
    std::vector<AvailabilityChange> made;
    for (std::int64_t at = 0; at < 30; at += 3 + below(14)) {
      made.push_back({static_cast<double>(at), below(4) == 0 ? 0 : below(kMostDevices + 1)});
    }
    return made;
  };
  Case of;
  of.changes = changes();
  of.length = 31 + seconds(20);
  of.end = std::array{TraceEnd::hold, TraceEnd::stop, TraceEnd::error,
                      TraceEnd::cycle}[static_cast<std::size_t>(below(4))];
  MarketModel& market = of.cluster.market;
  market.machine = 1 + below(2);
  market.provision_seconds = static_cast<double>(below(2)) * seconds(4);
  market.join_seconds = static_cast<double>(below(2)) * seconds(5);
  market.notice_seconds = static_cast<double>(below(2)) * seconds(5);
  market.loses = below(3) == 0 ? Loses::checkpoint : Loses::step;
  market.on_demand_devices = below(4) == 0 ? 0 : 4;
  market.on_demand_price = static_cast<double>(2 + below(3)) * kUnit;
  if (below(3) == 0) market.billing = kBillings[static_cast<std::size_t>(below(4))].value;
  if (below(5) == 0) market.mtbf_seconds = 20;
  of.cluster.restart_seconds = static_cast<double>(below(3)) * seconds(3);
  of.cluster.checkpoint_steps = below(3);
  of.cluster.checkpoint_seconds = seconds(2);
  of.on_idle = below(3) == 0 ? OnIdle::checkpoint : OnIdle::pause;
  if (below(4) == 0) {
    of.cluster.price.of_trace = true;
    for (std::int64_t at = 0; at < 30; at += 4 + below(20)) {
      of.prices.push_back({static_cast<double>(at), static_cast<double>(below(5)) * kUnit});
    }
  } else {
    of.cluster.price.constant = static_cast<double>(below(3)) * kUnit;
  }
  of.fewest = 1 + below(4);
  of.of_device = below(2) * 3;
  of.deadline = static_cast<double>(8 + below(16));
  of.plan.remainder = below(2) == 0 ? Remainder::drop : Remainder::carry;
  of.plan.epochs = 1 + below(3) / 2;
  of.plan.dataset_size = kMostDevices * 2 + below(6);
  if (below(3) == 0) {
    of.far_changes = changes();
    market.move.latency_seconds = seconds(3);
    market.move.state_bytes = 1'000'000'000;
    market.move.egress_price = static_cast<double>(below(3));
  }
  if (market.notice_seconds > 0 && below(2) == 0) market.false_notice_seconds = 8;
  return of;
}

// Answers by a list of numbers, one for each different view, which it lengthens by zeros.
class Script final : public MarketPolicy {
 public:
  Script(const Case& of, std::vector<std::size_t>& numbers, std::vector<std::size_t>& choices)
      : of_(of), numbers_(numbers), choices_(choices) {
    const Zones zones = zones_of(of);
    for (const Zone& zone : zones.all()) {
      spot_.emplace_back(zone.availability, of.cluster.market, of.cluster.price);
    }
  }

  struct TooLate {};

  [[nodiscard]] MarketChoice choose(const MarketView& view) const override {
    if (view.seconds > of_.deadline) throw TooLate();
    const double again = next_moment(view.seconds);
    std::vector<MarketChoice> all{{.again = again}};
    for (std::size_t i = 0; i < view.places.size(); ++i) {
      if (view.here == i) all.push_back({.place = i, .most = 0, .again = again});
      if (view.here != i && view.places[i].devices == 0) continue;
      all.push_back({.place = i, .again = again});
      for (const std::int64_t most : fewer(view, i)) {
        all.push_back({.place = i, .most = most, .again = again});
      }
    }
    const auto [found, is_new] =
        asked_.try_emplace({view.seconds, view.share, view.here}, asked_.size());
    // An epoch's end may ask once more; otherwise it goes round in circles.
    if (!is_new && ++again_ > 100) throw TooLate();
    if (!is_new) return all[numbers_[found->second]];
    if (numbers_.size() < asked_.size()) numbers_.push_back(0);
    choices_.resize(asked_.size());
    choices_.back() = all.size();
    return all[numbers_[found->second]];
  }
  [[nodiscard]] bool needs_on_demand() const override { return false; }

 private:
  // Powers of two, and the devices that stay after announced losses. Those that have not joined
  // wait, however many are wanted.
  [[nodiscard]] std::set<std::int64_t> fewer(const MarketView& view, std::size_t place) const {
    const std::int64_t devices = view.places[place].devices;
    const MarketModel& market = of_.cluster.market;
    const bool joins = market.provision_seconds + market.join_seconds > 0;
    if (joins && view.here != place) return {};
    std::set<std::int64_t> fewer;
    if (place < spot_.size()) fewer = staying(spot_[place], view.seconds, devices);
    for (std::int64_t most = 1; most < devices; most *= 2) {
      if (most >= of_.fewest) fewer.insert(most);
    }
    return fewer;
  }

  // The devices that stay after the losses that have been announced.
  [[nodiscard]] std::set<std::int64_t> staying(const Market& spot, double now,
                                               std::int64_t devices) const {
    std::set<std::int64_t> stay;
    const MarketModel& market = of_.cluster.market;
    if (market.loses == Loses::checkpoint) return stay;
    for (double at = now + 1; at <= now + market.notice_seconds; ++at) {
      const std::int64_t left = spot.offered(std::floor(at));
      if (left > 0 && left < devices) stay.insert(left);
    }
    return stay;
  }

  // The next time at which a loss is announced or the run fails.
  [[nodiscard]] double next_moment(double now) const {
    double next = spot_.front().next_failure(now);
    const double notice = of_.cluster.market.notice_seconds;
    if (notice == 0) return next;
    for (const Market& spot : spot_) {
      const auto change = spot.availability().next_change(now + notice);
      if (change && *change - notice > now) next = std::min(next, *change - notice);
    }
    return next;
  }

  const Case& of_;
  std::vector<Market> spot_;
  std::vector<std::size_t>& numbers_;
  std::vector<std::size_t>& choices_;
  mutable int again_ = 0;
  mutable std::map<std::tuple<double, double, std::optional<std::size_t>>, std::size_t> asked_;
};

using Result = std::pair<double, double>;
constexpr Result kNone{kNever, kNever};

// Money and time of a policy; kNone if it does not end, or not in time.
Result result_of(const Case& of, std::shared_ptr<const MarketPolicy> policy) {
  try {
    const auto clock = maker_of(of)(std::move(policy));
    const SimulationResult result =
        simulate(*clock, of.plan, {}, {.hours = 10 * of.deadline / kUnit});
    if (result.ended || result.time->seconds > of.deadline) return kNone;
    return {result.time->money, result.time->seconds};
  } catch (const Script::TooLate&) {
    return kNone;
  } catch (const Error&) {
    return kNone;
  }
}

constexpr std::int64_t kMostScripts = 2'000;

// The best of all sequences of choices; empty if they are too many.
std::optional<Result> brute_force(const Case& of) {
  Result best = kNone;
  std::vector<std::size_t> numbers;
  for (std::int64_t scripts = 0; scripts < kMostScripts; ++scripts) {
    std::vector<std::size_t> choices;
    best = std::min(best, result_of(of, std::make_shared<Script>(of, numbers, choices)));
    numbers.resize(choices.size());
    while (!numbers.empty() && numbers.back() + 1 == choices[numbers.size() - 1]) {
      numbers.pop_back();
    }
    if (numbers.empty()) return best;
    ++numbers.back();
  }
  return std::nullopt;
}

std::vector<std::shared_ptr<const MarketPolicy>> policies_of(const Case& of) {
  std::vector<std::shared_ptr<const MarketPolicy>> policies{
      make_market_policy("spot"), make_market_policy("late:few=3,from=0.5")};
  if (of.cluster.market.on_demand_devices == 0) return policies;
  for (const char* const name : {"on-demand", "greedy", "uniform", "lifetimes"}) {
    policies.push_back(make_market_policy(name));
  }
  return policies;
}

Result best_policy(const Case& of) {
  Result best = kNone;
  for (const auto& policy : policies_of(of)) best = std::min(best, result_of(of, policy));
  return best;
}

TEST(Optimum, IsTheBestOfAllSequencesOfChoices) {
  const int cases = test::cases(30, 150);
  int compared = 0;
  int moved = 0;
  int ends = 0;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(cases); ++seed) {
    SCOPED_TRACE(seed);
    const Case of = random_case(seed);
    const std::optional<Result> best = brute_force(of);
    if (!best) continue;
    ++compared;
    moved += of.far_changes.empty() ? 0 : 1;
    const Optimum optimum =
        find_optimum(maker_of(of), {.plan = of.plan, .policies = policies_of(of)});
    EXPECT_TRUE(optimum.proven);
    EXPECT_LE(optimum.least, optimum.money);
    // A policy may also decide at times of its own.
    const Result least = std::min(*best, best_policy(of));
    if (of.cluster.market.mtbf_seconds > 0 && least != kNone) {
      // Failures are no whole seconds, so the order of a sum matters.
      EXPECT_NEAR(optimum.money, least.first, 1e-9);
    } else {
      EXPECT_EQ(optimum.money, least.first);
      EXPECT_EQ(optimum.seconds, least.second);
    }
    ASSERT_EQ(optimum.policy != nullptr, least != kNone);
    if (!optimum.policy) continue;
    ++ends;
    EXPECT_EQ(result_of(of, optimum.policy), Result(optimum.money, optimum.seconds));
  }
  EXPECT_GE(compared, cases / 2);
  EXPECT_GE(moved, cases / 10);
  EXPECT_GE(ends, cases * 3 / 10);
}

// Devices that the provider ends in their first minute cost nothing, so the slower zone, which ends
// after 40 s, is the first to be used. Six steps of 6 s are free; two of 4 s cost 12 each.
TEST(Optimum, KnowsFreeMinutesBeforeTheyAreTakenOff) {
  Case of{.changes = {{0, 2}, {40, 0}}, .far_changes = {{0, 3}}};
  of.cluster.market.billing = Billing::gcp;
  of.cluster.price.constant = kUnit;
  of.plan.dataset_size = 8 * of.of_step;
  EXPECT_GT(best_policy(of).first, 2 * 12) << "no policy finds it";
  const Optimum optimum =
      find_optimum(maker_of(of), {.plan = of.plan, .policies = policies_of(of)});
  EXPECT_TRUE(optimum.proven);
  EXPECT_EQ(optimum.money, 2 * 12);
}

// Devices that begin to join at 0 s are paid for at 4 until 5 s, and at 1 from then on; those that
// begin later are too late. The bound takes the lower price for all of the 10 s.
TEST(OptimumBound, HasTheLowestPriceWhileDevicesJoin) {
  const std::vector<Market> markets{Market(
      Availability({{0, 1}}, 1000, "cloud", TraceEnd::hold, {}, {{0, 4 * kUnit}, {5, kUnit}}),
      {.join_seconds = 10}, {.of_trace = true})};
  const OptimumBound bound(markets, {{.devices = 1, .samples = 1, .cores = 1, .seconds = 1}}, 30,
                           {.join_seconds = 10});
  EXPECT_NEAR(bound.money_without_devices(0, 20), 10 + 20, 1e-6);
  EXPECT_EQ(bound.money_without_devices(0, 21), kNever);
  EXPECT_NEAR(bound.entry_money(), 10, 1e-9);
}

// Of thirty prices, one for each second, not all are worths that are tried; the least and the
// largest are, and with the latter the bound of a training that takes every second is what it pays.
TEST(OptimumBound, IsExactForATrainingThatTakesEverySecondOfManyPrices) {
  std::vector<PriceChange> prices;
  double all = 0;
  for (int second = 0; second < 30; ++second) {
    prices.push_back({static_cast<double>(second), (1 + second) * kUnit});
    all += 1 + second;
  }
  const std::vector<Market> markets{Market(
      Availability({{0, 1}}, 1000, "cloud", TraceEnd::hold, {}, prices), {}, {.of_trace = true})};
  const OptimumBound bound(markets, {{.devices = 1, .samples = 1, .cores = 1, .seconds = 1}}, 30,
                           {});
  EXPECT_NEAR(bound.money(0, 30), all, 1e-6);
  EXPECT_EQ(bound.money(0, 31), kNever);
  EXPECT_LE(bound.money(0, 15), 15 * 16 / 2) << "the fifteen cheapest seconds";
  EXPECT_GE(bound.money(0, 15), 15 * 16 / 2 * 0.9);
}

// A longer training, in markets as random as those of market_policy_test.cpp.
Case random_race(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  Case race{.length = 1000, .end = TraceEnd::cycle, .fewest = 4, .of_step = 24};
  for (std::int64_t at = 0; at < 1000; at += 1 + below(90)) {
    race.changes.push_back({static_cast<double>(at), below(2) == 0 ? 0 : below(13)});
  }
  MarketModel& market = race.cluster.market;
  market.provision_seconds = static_cast<double>(below(10));
  market.join_seconds = static_cast<double>(below(10));
  market.notice_seconds = static_cast<double>(below(2) * below(12));
  market.on_demand_devices = 4;
  market.on_demand_price = 3 * kUnit;
  race.cluster.price.constant = kUnit;
  race.cluster.restart_seconds = static_cast<double>(below(6));
  constexpr std::int64_t kSteps = 30;
  race.plan.dataset_size = kSteps * race.of_step;
  race.deadline = static_cast<double>(kSteps * 6 + 60 + below(300));
  return race;
}

TEST(Optimum, IsNeverDearerThanAPolicy) {
  const int races = test::cases(6, 30);
  int proven = 0;
  int better = 0;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(races); ++seed) {
    SCOPED_TRACE(seed);
    const Case race = random_race(seed);
    const Optimum optimum =
        find_optimum(maker_of(race), {.plan = race.plan, .policies = policies_of(race)});
    const Result best = best_policy(race);
    ASSERT_NE(optimum.policy, nullptr);
    EXPECT_LE(optimum.money, best.first);
    EXPECT_LE(optimum.seconds, race.deadline);
    EXPECT_EQ(result_of(race, optimum.policy), Result(optimum.money, optimum.seconds));
    better += optimum.money < best.first ? 1 : 0;
    proven += optimum.proven ? 1 : 0;
  }
  EXPECT_GE(better, races / 2);
  EXPECT_GE(proven, races / 2);
}

TEST(Optimum, IsBoundedWhereItIsNotProven) {
  constexpr std::int64_t kTimes = 10;
  Case race = random_race(1);
  race.plan.dataset_size *= kTimes;
  race.deadline *= kTimes;
  const Optimum optimum = find_optimum(
      maker_of(race), {.plan = race.plan, .policies = policies_of(race), .most_states = 60'000});
  EXPECT_FALSE(optimum.proven);
  const Result best = best_policy(race);
  EXPECT_LE(optimum.money, 0.95 * best.first);
  EXPECT_LE(optimum.least, optimum.money);
  EXPECT_GE(optimum.least, 0.5 * optimum.money);
  EXPECT_EQ(result_of(race, optimum.policy), Result(optimum.money, optimum.seconds));
}

}  // namespace
}  // namespace rubato::optimum_test
