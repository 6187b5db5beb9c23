#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/steps/modelled_time.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/sizes.hpp"

namespace rubato {
namespace {

constexpr std::int64_t kMinibatches = 24;
constexpr std::int64_t kSteps = 64;
constexpr double kHour = 3600;

// The devices and prices of a zone.
struct Offers {
  std::vector<AvailabilityChange> changes{};
  std::vector<PriceChange> prices{};
  std::int64_t length = 0;
};

// A case whose times are all whole seconds, so that it can be reckoned second by second. So are
// shares of the deadline, since the steps are a power of two.
struct Case {
  std::vector<Offers> zones{1};
  std::int64_t fewest = 1;
  ClusterModel cluster{.substep_seconds = 1};
  OnIdle on_idle = OnIdle::pause;
  std::string policy;
  double deadline = std::numeric_limits<double>::infinity();
};

using Below = std::function<std::int64_t(std::uint64_t)>;

// `mean` seconds between two changes, about one in `without` of which leaves no devices.
Offers random_offers(const Below& below, std::int64_t length, std::uint64_t mean,
                     std::uint64_t without) {
  Offers of{.length = length};
  for (std::int64_t at = 0; at < length; at += 1 + below(2 * mean - 1)) {
    of.changes.push_back({static_cast<double>(at), below(without) == 0 ? 0 : below(13)});
  }
  for (std::int64_t at = 0; at < length; at += 1 + below(60)) {
    of.prices.push_back({static_cast<double>(at), static_cast<double>(below(100))});
  }
  return of;
}

Case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  Case of{};
  of.zones = {random_offers(below, 150 + below(200), 13, 5)};
  of.fewest = 1 + below(3);
  MarketModel& market = of.cluster.market;
  market.machine = 1 + below(3);
  market.provision_seconds = static_cast<double>(below(3) * below(8));
  market.join_seconds = static_cast<double>(below(3) * below(8));
  market.notice_seconds = static_cast<double>(below(2) * below(12));
  market.loses = below(2) == 0 ? Loses::step : Loses::checkpoint;
  market.billing = kBillings[static_cast<std::size_t>(below(4))].value;
  of.cluster.restart_seconds = static_cast<double>(below(6));
  of.cluster.checkpoint_steps = below(2) * (1 + below(6));
  if (of.cluster.checkpoint_steps > 0) {
    of.cluster.checkpoint_seconds = static_cast<double>(below(4));
  }
  of.on_idle = below(2) == 0 ? OnIdle::pause : OnIdle::checkpoint;
  if (below(3) == 0) {
    of.cluster.price.constant = static_cast<double>(below(10));
  } else {
    of.cluster.price.of_trace = true;
  }
  if (market.notice_seconds > 0 && below(3) > 0) {
    market.false_notice_seconds = static_cast<double>(2 + below(15));
    market.false_notice_seed = seed;
  }
  return of;
}

// The same with up to three zones, a move that takes a while and costs money, and a policy that
// decides between them and on-demand devices.
Case random_case_of_zones(std::uint64_t seed) {
  Case of = random_case(seed);
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  of.zones.clear();
  for (std::int64_t zones = 1 + below(3); zones > 0; --zones) {
    of.zones.push_back(random_offers(below, 150 + below(400), 30, 2));
  }
  MarketModel& market = of.cluster.market;
  market.move = {.latency_seconds = static_cast<double>(below(4)),
                 .bandwidth = 2,
                 .state_bytes = 2 * below(8),
                 .egress_price = 1e9 * static_cast<double>(below(5))};
  constexpr std::array kPolicies{
      "spot", "late:few=4,from=0.25", "on-demand", "greedy", "uniform", "lifetimes"};
  of.policy = kPolicies[static_cast<std::size_t>(below(kPolicies.size()))];
  const auto policy = make_market_policy(of.policy);
  if (policy->needs_on_demand() || below(2) == 0) {
    market.on_demand_devices = 4 + below(5);
    market.on_demand_price = static_cast<double>(50 + below(100));
  }
  if (policy->needs_deadline()) of.deadline = static_cast<double>(kSteps * (4 + below(10)));
  return of;
}

SourceProgress progress_of(std::int64_t step) {
  return {.step = StepIndex{step},
          .epoch = {},
          .samples = step * kMinibatches,
          .all_samples = kSteps * kMinibatches};
}

Zones zones_of(const Case& of) {
  std::vector<Zone> zones;
  for (const Offers& zone : of.zones) {
    zones.push_back({.name = fmt::format("zone {}", zones.size()),
                     .availability = {zone.changes, static_cast<double>(zone.length), "cloud",
                                      TraceEnd::stop, std::nullopt, zone.prices}});
  }
  return {std::move(zones), "clouds"};
}

ClockedSource source_of(const Case& of) {
  return {zones_of(of),
          [fewest = of.fewest](std::int64_t devices,
                               const SourceProgress&) -> std::optional<TraceStep> {
            if (devices < fewest) return std::nullopt;
            return TraceStep{.batch_size = kMinibatches, .cores = devices};
          },
          ClockOptions{.cluster = of.cluster,
                       .minibatch_size = 1,
                       .on_idle = of.on_idle,
                       .max_batch = kMinibatches,
                       .market = of.policy.empty() ? nullptr : make_market_policy(of.policy),
                       .deadline_seconds = of.deadline}};
}

// The same without any of the project's clock: a loop over seconds with a list of devices. Policies
// decide by what it has reckoned.
class Reckoning {
 public:
  explicit Reckoning(const Case& of) : of_(of), market_(of.cluster.market) {
    if (!of.policy.empty()) policy_ = make_market_policy(of.policy);
    places_ = std::ssize(of.zones) + (policy_ && market_.on_demand_devices > 0 ? 1 : 0);
    const Market market(zones_of(of).all().front().availability, market_, {});
    constexpr double kEnd = 2000;
    for (double at = market.next_false_notice(0); at < kEnd; at = market.next_false_notice(at)) {
      false_notices_.insert(whole(at));
    }
  }

  // Takes a step; false if none ends before the availabilities do.
  bool step() {
    bool saved = false;
    bool idle = false;
    bool moved = false;
    std::vector<std::int64_t> queue;
    std::size_t done = 0;
    const auto lose = [&] {
      if (market_.loses == Loses::checkpoint && !saved) queue = unsaved_;
      done = 0;
    };
    const std::int64_t notice = whole(market_.notice_seconds);
    while (true) {
      if (place_) arrive();
      MarketChoice choice{.place = place_};
      if (policy_) choice = policy_->choose(view(saved));
      if (choice.place != place_) {
        place_ = choice.place;
        devices_.clear();
        moved = moved || place_;
        if (place_) arrive();
      }
      std::int64_t use = std::min(joined(), choice.most.value_or(joined()));
      const bool repeats = done < queue.size();
      const bool saves = !repeats && of_.cluster.checkpoint_steps > 0 &&
                         (steps_ + 1) % of_.cluster.checkpoint_steps == 0;
      const auto duration = [&] {
        return seconds_with(use) + (saves ? whole(of_.cluster.checkpoint_seconds) : 0);
      };
      std::int64_t doubted_until = -1;
      if (market_.loses == Loses::step) {
        for (std::int64_t s = 1; use >= of_.fewest && s <= notice && s < duration(); ++s) {
          if (offered(now_ + s) < use) {
            use = offered(now_ + s);
          } else if (is_falsely_announced(now_ + s) && without_last() < use) {
            use = without_last();
            doubted_until = now_ + s;
          } else {
            continue;
          }
          s = 0;
        }
      }
      if (use < of_.fewest) {
        std::int64_t until = next_change(choice.again);
        if (doubted_until >= 0 && (until < 0 || doubted_until < until)) until = doubted_until;
        if (until < 0) return false;
        if (until == doubted_until) ++false_alarms_;
        const std::int64_t some = std::min(joined(), choice.most.value_or(joined()));
        if (some == 0 && !moved) lose();
        const bool joins =
            some < of_.fewest && some + std::ssize(devices_) - joined() >= of_.fewest;
        // Something changes in the end, and the kind of the time before is that of its beginning.
        while (now_ < until) pass(0, joins ? time_.join_seconds : time_.idle_seconds);
        idle = idle || !joins;
        continue;
      }
      const bool restarts = moved || (idle && of_.on_idle == OnIdle::checkpoint);
      moved = false;
      idle = false;
      if (restarts && steps_ > 0) {
        std::int64_t seconds = 0;
        if (is_elsewhere(*place_)) {
          zone_ = *place_;
          seconds = move_seconds();
          time_.money += move_money();
          ++moves_;
        }
        restart(use, seconds);
        continue;
      }
      const std::int64_t end = now_ + duration();
      const std::int64_t saving = whole(of_.cluster.checkpoint_seconds);
      std::int64_t lost_at = 0;
      bool is_true = true;
      for (std::int64_t s = now_ + 1; s < end && lost_at == 0; ++s) {
        if (offered(s) < use) {
          lost_at = s;
        } else if (is_falsely_announced(s)) {
          const std::int64_t known = std::max(now_, s - notice);
          const bool matters = market_.loses == Loses::step
                                   ? offered(known) - market_.machine < use
                                   : !repeats && !saved && !unsaved_.empty() && known + saving <= s;
          if (!matters) continue;
          lost_at = s;
          is_true = false;
          ++false_alarms_;
        }
      }
      if (lost_at == 0) {
        double none = 0;
        std::int64_t cores = use;
        while (now_ < end) pass(cores, repeats ? time_.redone_seconds : none);
        if (repeats) {
          ++done;
          continue;
        }
        if (saves) time_.checkpoint_seconds += of_.cluster.checkpoint_seconds;
        if (saved) unsaved_.clear();
        unsaved_.push_back(kMinibatches);
        if (saves) unsaved_.clear();
        if (!is_on_demand(*place_)) zone_ = *place_;
        ++steps_;
        return true;
      }
      std::int64_t cores = use;
      while (now_ < lost_at - notice) pass(cores, time_.lost_seconds);
      if (market_.loses == Loses::checkpoint) {
        if (notice > 0 && now_ + saving <= lost_at) {
          for (std::int64_t s = 0; s < saving; ++s) pass(cores, time_.checkpoint_seconds);
          if (!repeats) {
            saved = true;
            queue.clear();
          }
        }
        if (!is_true) continue;
        while (now_ < lost_at) pass(cores, time_.lost_seconds);
      }
      lose();
      restart(use);
    }
  }

  [[nodiscard]] ClockTime time() const {
    ClockTime time = time_;
    time.seconds = static_cast<double>(now_);
    return time;
  }
  // Moves of the state to another zone.
  [[nodiscard]] std::int64_t moves() const { return moves_; }
  // False notices that have changed something.
  [[nodiscard]] std::int64_t false_alarms() const { return false_alarms_; }

 private:
  struct Device {
    std::int64_t paid_from = 0;
    std::int64_t joins = 0;
    double cost = 0;
  };

  static std::int64_t whole(double seconds) { return std::llround(seconds); }

  template <class Change>
  static const Change& at(const std::vector<Change>& changes, std::int64_t seconds) {
    const Change* found = nullptr;
    for (const Change& change : changes) {
      if (whole(change.seconds) <= seconds) found = &change;
    }
    return *found;
  }

  static std::int64_t seconds_with(std::int64_t devices) {
    return (kMinibatches + devices - 1) / devices;
  }
  [[nodiscard]] bool is_on_demand(std::size_t place) const { return place >= of_.zones.size(); }
  [[nodiscard]] bool is_elsewhere(std::size_t place) const {
    return steps_ > 0 && !is_on_demand(place) && place != zone_;
  }
  [[nodiscard]] std::int64_t move_seconds() const {
    return whole(market_.move.latency_seconds) + *market_.move.state_bytes / 2;
  }
  [[nodiscard]] double move_money() const {
    return market_.move.egress_price / 1e9 * static_cast<double>(*market_.move.state_bytes);
  }

  [[nodiscard]] std::int64_t offered(std::size_t place, std::int64_t seconds) const {
    std::int64_t devices = market_.on_demand_devices;
    if (!is_on_demand(place)) {
      const Offers& zone = of_.zones[place];
      devices = seconds < zone.length ? at(zone.changes, seconds).devices : 0;
    }
    return devices / market_.machine * market_.machine;
  }
  [[nodiscard]] std::int64_t offered(std::int64_t seconds) const {
    return offered(*place_, seconds);
  }
  // True if a loss at that second was or will be announced, which does not come.
  [[nodiscard]] bool is_falsely_announced(std::int64_t seconds) const {
    return !is_on_demand(*place_) &&
           false_notices_.contains(seconds - whole(market_.notice_seconds));
  }
  [[nodiscard]] std::int64_t without_last() const { return offered(now_) - market_.machine; }
  [[nodiscard]] double price(std::size_t place) const {
    if (is_on_demand(place)) return market_.on_demand_price;
    if (!of_.cluster.price.of_trace) return of_.cluster.price.constant;
    const Offers& zone = of_.zones[place];
    return now_ < zone.length ? at(zone.prices, now_).price : 0;
  }
  [[nodiscard]] std::int64_t joined() const {
    return std::ranges::count_if(devices_, [&](const Device& of) { return of.joins <= now_; });
  }
  [[nodiscard]] bool changes_at(const Offers& zone, std::int64_t s) const {
    if (s == zone.length) return true;
    if (s > zone.length) return false;
    // A policy may decide by a price.
    return at(zone.changes, s).devices != at(zone.changes, s - 1).devices ||
           (of_.cluster.price.of_trace && at(zone.prices, s).price != at(zone.prices, s - 1).price);
  }
  // The next second at which anything may change; negative if nothing does.
  [[nodiscard]] std::int64_t next_change(double again) const {
    std::int64_t last = now_;
    for (const Offers& zone : of_.zones) last = std::max(last, zone.length);
    std::int64_t next = -1;
    const auto consider = [&](std::int64_t time) {
      if (time > now_ && (next < 0 || time < next)) next = time;
    };
    for (std::int64_t s = now_ + 1; s <= last; ++s) {
      if (std::ranges::any_of(of_.zones, [&](const Offers& zone) { return changes_at(zone, s); })) {
        consider(s);
      }
    }
    if (std::isfinite(again)) consider(whole(again));
    for (const Device& device : devices_) {
      consider(device.paid_from);
      consider(device.joins);
    }
    return next;
  }

  [[nodiscard]] MarketView view(bool saved) const {
    MarketView view{.seconds = static_cast<double>(now_),
                    .deadline = of_.deadline,
                    .share = static_cast<double>(steps_) / kSteps,
                    .here = place_};
    const double restart = of_.cluster.restart_seconds;
    const std::int64_t saving = whole(of_.cluster.checkpoint_seconds);
    std::int64_t longest = 0;
    std::int64_t repeated = 0;
    for (std::size_t i = 0; std::cmp_less(i, places_); ++i) {
      MarketView::Place place{.on_demand = is_on_demand(i),
                              .devices = offered(i, now_),
                              .price = price(i),
                              .enter_seconds = market_.provision_seconds + market_.join_seconds};
      if (place_ == i && !devices_.empty()) {
        place.enter_seconds =
            static_cast<double>(std::max<std::int64_t>(0, devices_.front().joins - now_));
      }
      if (is_elsewhere(i)) {
        place.move_seconds = static_cast<double>(move_seconds()) + restart;
        place.move_money = move_money();
        place.enter_seconds += place.move_seconds;
      }
      std::int64_t losses = 0;
      for (std::int64_t s = 1; s <= now_; ++s) losses += offered(i, s) < offered(i, s - 1) ? 1 : 0;
      if (losses > 0) place.mean_stay = view.seconds / static_cast<double>(losses);
      if (place.devices >= of_.fewest) {
        const std::int64_t seconds = seconds_with(place.devices);
        longest = std::max(longest, seconds);
        const std::int64_t every = of_.cluster.checkpoint_steps;
        std::int64_t checkpoints = 0;
        for (std::int64_t step = steps_ + 1; step <= kSteps; ++step) {
          checkpoints += every > 0 && step % every == 0 ? 1 : 0;
        }
        place.rest_seconds = place.enter_seconds + static_cast<double>((kSteps - steps_) * seconds +
                                                                       checkpoints * saving);
        if (place.on_demand && market_.loses == Loses::checkpoint && !saved) {
          repeated = std::ssize(unsaved_) * seconds;
        }
      }
      view.places.push_back(place);
    }
    view.slack = static_cast<double>(longest + saving + repeated) + 2 * restart +
                 static_cast<double>(of_.zones.size() > 1 ? move_seconds() : 0);
    return view;
  }

  // Makes the devices those of this second.
  void arrive() {
    while (std::ssize(devices_) < offered(now_)) {
      const std::int64_t paid_from = now_ + whole(market_.provision_seconds);
      devices_.push_back({paid_from, paid_from + whole(market_.join_seconds)});
    }
    while (std::ssize(devices_) > offered(now_)) {
      const std::int64_t free = market_.billing == Billing::aws   ? 3600
                                : market_.billing == Billing::gcp ? 60
                                                                  : 0;
      const Device& last = devices_.back();
      if (now_ - last.paid_from < free) time_.money -= last.cost;
      devices_.pop_back();
    }
  }

  // A second in which the step has `cores`, of which those that leave are gone.
  void pass(std::int64_t& cores, double& kind) {
    if (place_) arrive();
    const auto of = [&](std::int64_t devices) { return devices < of_.fewest ? 0 : devices; };
    cores = std::min(cores, of(joined()));
    const double each = place_ ? price(*place_) / kHour : 0;
    std::int64_t paid = 0;
    for (Device& device : devices_) {
      if (device.paid_from > now_) continue;
      ++paid;
      device.cost += each;
    }
    if (market_.billing == Billing::steps) paid = cores + of(paid) - of(joined());
    time_.core_seconds += static_cast<double>(paid);
    time_.money += static_cast<double>(paid) * each;
    kind += 1;
    ++now_;
  }
  void pass(std::int64_t&& cores, double& kind) { pass(cores, kind); }

  void restart(std::int64_t cores, std::int64_t more = 0) {
    ++time_.restarts;
    const std::int64_t end = now_ + whole(of_.cluster.restart_seconds) + more;
    while (now_ < end) pass(cores, time_.restart_seconds);
  }

  const Case& of_;
  const MarketModel market_;
  std::shared_ptr<const MarketPolicy> policy_;
  // Zones, and on-demand devices after them.
  std::int64_t places_ = 1;
  std::optional<std::size_t> place_{0};
  // The zone that has the state.
  std::size_t zone_ = 0;
  std::int64_t moves_ = 0;
  std::set<std::int64_t> false_notices_;
  std::int64_t false_alarms_ = 0;
  std::int64_t now_ = 0;
  std::int64_t steps_ = 0;
  std::vector<Device> devices_;
  std::vector<std::int64_t> unsaved_;
  ClockTime time_;
};

// Compares all steps of a case with the reckoning; adds to `all` and counts moves and steps.
struct Compared {
  ClockTime all{};
  std::int64_t steps = 0;
  std::int64_t moves = 0;
  std::int64_t false_alarms = 0;
};
void compare(const Case& of, Compared& compared) {
  ClockedSource source = source_of(of);
  Reckoning reckoning(of);
  constexpr std::array kParts{
      &ClockTime::seconds,      &ClockTime::core_seconds,   &ClockTime::money,
      &ClockTime::idle_seconds, &ClockTime::lost_seconds,   &ClockTime::restart_seconds,
      &ClockTime::join_seconds, &ClockTime::redone_seconds, &ClockTime::checkpoint_seconds};
  for (std::int64_t i = 0; i < kSteps; ++i) {
    SCOPED_TRACE(fmt::format("{}, step {}", of.policy, i));
    const SourceProgress progress = progress_of(i);
    const auto step = source.next(progress);
    ASSERT_EQ(step.has_value(), reckoning.step());
    if (!step) break;
    source.taken(*step, progress);
    const ClockTime time = source.time();
    const ClockTime expected = reckoning.time();
    EXPECT_EQ(time.restarts, expected.restarts);
    for (const auto part : kParts) {
      ASSERT_NEAR(time.*part, expected.*part, 1e-9 * (1 + std::abs(expected.*part)));
      compared.all.*part += expected.*part;
    }
    ++compared.steps;
  }
  compared.moves += reckoning.moves();
  compared.false_alarms += reckoning.false_alarms();
}

TEST(Market, CostsWhatSecondsOfDevicesAddUpTo) {
  Compared compared;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    compare(random_case(seed), compared);
    if (testing::Test::HasFatalFailure()) return;
  }
  // Nothing of it is rare.
  EXPECT_GT(compared.steps, 2000);
  EXPECT_GT(compared.all.join_seconds, 5000);
  EXPECT_GT(compared.all.redone_seconds, 5000);
  EXPECT_GT(compared.all.checkpoint_seconds, 5000);
  EXPECT_GT(compared.false_alarms, 200);
}

TEST(Market, MovesBetweenZonesAsReckonedSecondBySecond) {
  Compared compared;
  const int cases = test::cases(50, 200);
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(cases); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    compare(random_case_of_zones(seed), compared);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(compared.steps, 25 * cases);
  EXPECT_GT(compared.moves, cases);
  EXPECT_GT(compared.false_alarms, cases);
}

TEST(Market, KnowsHowLongDevicesHaveStayed) {
  const Market market(Availability({{0, 4}, {100, 2}, {200, 4}, {300, 1}, {500, 2}}, 1000, "cloud"),
                      {}, {});
  EXPECT_EQ(market.mean_stay(99), std::numeric_limits<double>::infinity());
  EXPECT_EQ(market.mean_stay(100), 100) << "the loss at that time counts";
  EXPECT_EQ(market.mean_stay(250), 250);
  EXPECT_EQ(market.mean_stay(600), 300) << "two losses: arrivals are none";
  EXPECT_EQ(market.mean_stay(150), 150) << "later losses do not count";
}

// A source of steps of a batch on all devices that are there.
ClockedSource steps_on(Availability availability, const ClusterModel& cluster, std::int64_t batch,
                       std::shared_ptr<const MarketPolicy> market = nullptr) {
  return {std::move(availability),
          [batch](std::int64_t devices, const SourceProgress&) {
            return std::optional(TraceStep{.batch_size = batch, .cores = devices});
          },
          ClockOptions{.cluster = cluster,
                       .minibatch_size = 1,
                       .max_batch = batch,
                       .market = std::move(market)}};
}

// Takes so many steps from that one on, and returns the time.
ClockTime take_steps(ClockedSource& source, std::int64_t count, std::int64_t from = 0) {
  for (std::int64_t i = from; i < from + count; ++i) {
    const SourceProgress progress{.step = StepIndex{i}, .epoch = {}};
    source.taken(*source.next(progress), progress);
  }
  return source.time();
}

// The example of docs/cluster.md.
TEST(Market, IsPaidForWhileItJoins) {
  ClusterModel cluster{.substep_seconds = 1};
  cluster.market = {.provision_seconds = 1, .join_seconds = 2};
  cluster.price.constant = kHour;
  ClockedSource source =
      steps_on(Availability({{0, 2}, {4, 3}}, 100, "cloud", TraceEnd::stop), cluster, 6);
  EXPECT_EQ(take_steps(source, 1),
            (ClockTime{.seconds = 6, .core_seconds = 11, .money = 11, .join_seconds = 3}));
  EXPECT_EQ(take_steps(source, 1, 1),
            (ClockTime{.seconds = 9, .core_seconds = 18, .money = 18, .join_seconds = 3}));
}

// 14 samples are left, which is a short step after two whole ones.
TEST(Market, ShowsPoliciesTheTimeOfTheLastShortStep) {
  class Seeing final : public MarketPolicy {
   public:
    explicit Seeing(MarketView& seen) : seen_(seen) {}
    [[nodiscard]] MarketChoice choose(const MarketView& view) const override {
      seen_ = view;
      return {.place = 0, .again = std::numeric_limits<double>::infinity()};
    }
    [[nodiscard]] bool needs_on_demand() const override { return false; }
    [[nodiscard]] bool needs_deadline() const override { return false; }

   private:
    MarketView& seen_;
  };
  MarketView seen;
  ClockedSource source = steps_on(Availability({{0, 2}}, 100, "cloud", TraceEnd::stop),
                                  {.substep_seconds = 1}, 6, std::make_shared<Seeing>(seen));
  static_cast<void>(
      source.next({.step = StepIndex{0}, .epoch = {}, .samples = 6, .all_samples = 20}));
  ASSERT_FALSE(seen.places.empty());
  EXPECT_EQ(seen.places[0].rest_seconds, 9);
}

// The example of docs/cluster.md.
ClockedSource two_zones(std::vector<AvailabilityChange> of_b = {{0, 2}}, double egress = 0.5,
                        double price = kHour) {
  ClusterModel cluster{.substep_seconds = 1, .restart_seconds = 1};
  cluster.market.move = {
      .latency_seconds = 1, .bandwidth = 2e9, .state_bytes = 4'000'000'000, .egress_price = egress};
  cluster.price.constant = price;
  std::vector<Zone> zones{
      {.name = "a", .availability = {{{0, 3}, {9, 0}}, 100, "a", TraceEnd::stop}},
      {.name = "b", .availability = {std::move(of_b), 100, "b", TraceEnd::stop}}};
  return {Zones(std::move(zones), "two zones"),
          [](std::int64_t devices, const SourceProgress&) {
            return std::optional(TraceStep{.batch_size = 6, .cores = devices});
          },
          ClockOptions{.cluster = cluster, .minibatch_size = 1, .max_batch = 6}};
}

// The time after so many steps, or at the end of the budget.
ClockTime time_after(ClockedSource& source, std::int64_t steps, const Budget& budget = {}) {
  for (std::int64_t i = 0; i < steps; ++i) {
    const SourceProgress progress{
        .step = StepIndex{i}, .epoch = {}, .samples = 6 * i, .budget = budget, .all_samples = 60};
    const auto step = source.next(progress);
    if (!step) return *source.end(progress).time;
    source.taken(*step, progress);
  }
  return source.time();
}

TEST(Market, PaysForMoves) {
  ClockedSource source = two_zones();
  EXPECT_EQ(time_after(source, 4), (ClockTime{.seconds = 8, .core_seconds = 24, .money = 24}));
  ClockedSource moved = two_zones();
  EXPECT_EQ(time_after(moved, 5), (ClockTime{.seconds = 17,
                                             .core_seconds = 24 + 3 + 8 + 6,
                                             .money = 24 + 3 + 2 + 8 + 6,
                                             .lost_seconds = 1,
                                             .restart_seconds = 5,
                                             .restarts = 2}));
}

TEST(Market, MovesWithinABudget) {
  const auto with = [](double money, double price = kHour) {
    ClockedSource source = two_zones({{0, 2}}, 0.5, price);
    const ClockTime time = time_after(source, 6, {.money = money});
    EXPECT_EQ(time.money, money);
    return time.seconds;
  };
  // 27 are spent before the move, for which 2 are paid when its restart begins.
  EXPECT_EQ(with(28), 10);
  EXPECT_EQ(with(29), 10);
  EXPECT_EQ(with(32), 11.5);
  // It is the only cost of devices that are free.
  EXPECT_EQ(with(2, 0), 10);
}

TEST(Market, TakesAStateWithTheSameZonesAlone) {
  ClockedSource source = two_zones();
  static_cast<void>(time_after(source, 5));
  const State state = state_of(source, 5);
  const auto error = [&](std::vector<AvailabilityChange> of_b) {
    ClockedSource other = two_zones(std::move(of_b), /*egress=*/0);
    return error_of([&] { load_state(other, state, 5); });
  };
  // Prices may be others, and devices after the state.
  EXPECT_EQ(error({{0, 2}, {18, 1}}), "no error");
  EXPECT_THAT(error({{0, 2}, {16, 1}}), HasSubstr("two zones: the devices until 17 s are not"));
}

// Failures at random times lose what is done since the last checkpoint. Work of w seconds between
// two of them, with its checkpoint, takes (1 / rate + restart) (exp(rate w) - 1) seconds on
// average, since a restart begins anew.
TEST(Market, FailsAsOftenAsItsMeanTimeBetweenFailuresSays) {
  constexpr std::int64_t kRuns = 400;
  constexpr std::int64_t kRunSteps = 100;
  constexpr std::int64_t kInterval = 5;
  double sum = 0;
  double squares = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    ClusterModel cluster{.substep_seconds = 2,
                         .checkpoint_steps = kInterval,
                         .checkpoint_seconds = 3,
                         .restart_seconds = 4};
    cluster.market = {.loses = Loses::checkpoint, .mtbf_seconds = 20, .mtbf_seed = seed};
    ClockedSource source = steps_on(Availability({{0, 1}}, 100, "one", TraceEnd::hold), cluster, 1);
    const ClockTime time = take_steps(source, kRunSteps);
    EXPECT_NEAR(time.training_seconds(), 2 * kRunSteps, 1e-6);
    EXPECT_NEAR(time.checkpoint_seconds, 3 * kRunSteps / kInterval, 1e-6);
    EXPECT_NEAR(time.restart_seconds, 4.0 * static_cast<double>(time.restarts), 1e-6);
    sum += time.seconds;
    squares += time.seconds * time.seconds;
  }
  const double mean = sum / kRuns;
  const double error = std::sqrt((squares / kRuns - mean * mean) / kRuns);
  const double rate = 1.0 / 20;
  const double expected =
      kRunSteps / kInterval * (1 / rate + 4) * (std::exp(rate * (2 * kInterval + 3)) - 1);
  EXPECT_NEAR(mean, expected, 4 * error);
  EXPECT_LT(error, 0.02 * expected);
}

// The example of docs/cluster.md.
TEST(Market, IsWarnedWithoutALoss) {
  ClusterModel cluster{.substep_seconds = 1, .restart_seconds = 1};
  MarketModel& market = cluster.market;
  market = {.notice_seconds = 2, .false_notice_seconds = 50};
  const Availability three({{0, 3}}, 100, "three", TraceEnd::hold);
  const auto first_at_5 = [&] {
    const Market drawn(three, market, {});
    return drawn.next_false_notice(0) == 5 && drawn.next_false_notice(5) > 20;
  };
  while (!first_at_5()) ++market.false_notice_seed;
  const auto second_step = [&] {
    ClockedSource source = steps_on(three, cluster, 12);
    return take_steps(source, 2);
  };
  EXPECT_EQ(second_step(), (ClockTime{.seconds = 12,
                                      .core_seconds = 12 + 3 + 3 + 12,
                                      .lost_seconds = 1,
                                      .restart_seconds = 1,
                                      .restarts = 1}));
  market.loses = Loses::checkpoint;
  cluster.checkpoint_seconds = 1;
  EXPECT_EQ(
      second_step(),
      (ClockTime{.seconds = 10, .core_seconds = 30, .lost_seconds = 1, .checkpoint_seconds = 1}));
  // It would not be ready before the loss.
  cluster.checkpoint_seconds = 3;
  EXPECT_EQ(second_step(), (ClockTime{.seconds = 8, .core_seconds = 24}));
}

// The only device waits for a loss that does not come, and goes on at that very time, however it is
// rounded.
TEST(Market, GoesOnWhenANoticeHasProvedFalse) {
  for (const double notice : {0.1, 0.3, 0.7, 1.1, 2.3}) {
    ClusterModel cluster{.substep_seconds = 3};
    cluster.market = {.notice_seconds = notice, .false_notice_seconds = 20};
    ClockedSource source = steps_on(Availability({{0, 1}}, 100, "one", TraceEnd::hold), cluster, 1);
    take_steps(source, 200);
    EXPECT_GT(source.time().idle_seconds, 5 * notice);
    EXPECT_NEAR(source.time().training_seconds(), 600, 1e-6);
  }
}

TEST(Market, TakesAStateWithTheSameFalseNoticesAlone) {
  Case of{};
  of.zones = {{.changes = {{0, 4}}, .length = 100}};
  of.cluster.market = {.notice_seconds = 2, .false_notice_seconds = 9};
  ClockedSource source = source_of(of);
  const State state = state_of(source, 0);
  ++of.cluster.market.false_notice_seed;
  ClockedSource other = source_of(of);
  EXPECT_THAT(error_of([&] { load_state(other, state, 0); }),
              HasSubstr("the state is of another cluster"));
}

TEST(Market, DrawsTheTimesOfFalseNotices) {
  constexpr std::int64_t kNotices = 2000;
  const MarketModel model{.mtbf_seconds = 100, .false_notice_seconds = 100};
  const Market market(Availability({{0, 1}}, 10, "cloud"), model, {});
  double last = 0;
  for (std::int64_t i = 0; i < kNotices; ++i) {
    const double next = market.next_false_notice(last);
    ASSERT_GE(next, last + 1);
    ASSERT_EQ(next, std::floor(next));
    last = next;
  }
  // Four standard errors; and failures with the same seed come at other times.
  EXPECT_NEAR(last / kNotices, 100, 4 * 100 / std::sqrt(kNotices));
  EXPECT_GT(std::abs(market.next_failure(0) - market.next_false_notice(0)), 1);
}

TEST(Market, FailsAtMostOnceInAMillisecond) {
  const Market market(Availability({{0, 1}}, 10, "cloud"), {.mtbf_seconds = 1e-9}, {});
  EXPECT_EQ(market.next_failure(0), 0.001);
  EXPECT_EQ(market.next_failure(0.001), 0.002);
}

TEST(Market, DrawsTheTimesToJoinOfMachines) {
  const MarketModel model{.machine = 2, .join_seconds = 100, .join_spread = 0.5, .join_seed = 3};
  const Market market(Availability({{0, 4001}}, 10'000, "cloud"), model, {});
  Fleet fleet;
  market.settle(fleet, 0);
  ASSERT_EQ(fleet.groups.size(), 2000U);
  double sum = 0;
  double squares = 0;
  for (const FleetGroup& group : fleet.groups) {
    EXPECT_EQ(group.devices, 2);
    const double logarithm = std::log(group.joins / 100);
    sum += logarithm;
    squares += logarithm * logarithm;
  }
  // Four standard errors.
  EXPECT_NEAR(sum / 2000, 0, 4 * 0.5 / std::sqrt(2000));
  EXPECT_NEAR(std::sqrt(squares / 2000), 0.5, 4 * 0.5 / std::sqrt(4000));
  EXPECT_EQ(fleet.joined(100), 2 * std::ranges::count_if(fleet.groups, [](const FleetGroup& of) {
                                 return of.joins <= 100;
                               }));
}

TEST(Market, NeedsPricesForThePriceOfATrace) {
  const auto market = [](std::vector<PriceChange> prices) {
    return error_of([&] {
      const Market of(Availability({{0, 1}}, 10, "cloud", TraceEnd::stop, {}, prices), {},
                      {.of_trace = true});
    });
  };
  EXPECT_THAT(market({}), HasSubstr("cloud: it has no prices; accepted: a column 'price'"));
  EXPECT_EQ(market({{0, 1}}), "no error");
  EXPECT_THAT(market({{1, 1}}), HasSubstr("a price of 1 at 1 s; accepted: prices of at least 0"));
  EXPECT_THAT(market({{0, -1}}), HasSubstr("a price of -1 at 0 s"));
}

TEST(Market, GoesOnFromAnyStep) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    const Case of = seed % 2 == 0 ? random_case(seed) : random_case_of_zones(seed);
    ClockedSource whole = source_of(of);
    State state;
    for (std::int64_t i = 0; i < kSteps; ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      // Each step is taken by a source of its own, from the state after the step before.
      ClockedSource again = source_of(of);
      if (i > 0) load_state(again, state, i);
      const SourceProgress progress = progress_of(i);
      const auto step = whole.next(progress);
      const auto other = again.next(progress);
      ASSERT_EQ(step, other);
      if (!step) break;
      whole.taken(*step, progress);
      again.taken(*other, progress);
      ASSERT_EQ(whole.time(), again.time());
      state = state_of(again, i + 1);
    }
  }
}

}  // namespace
}  // namespace rubato
