#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/steps/modelled_time.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMinibatches = 24;
constexpr double kHour = 3600;

// A case whose times are all whole seconds, so that it can be reckoned second by second.
struct Case {
  std::vector<AvailabilityChange> changes;
  std::vector<PriceChange> prices;
  std::int64_t length = 0;
  std::int64_t fewest = 1;
  ClusterModel cluster{.substep_seconds = 1};
  OnIdle on_idle = OnIdle::pause;
};

Case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  Case of{};
  of.length = 150 + below(200);
  for (std::int64_t at = 0; at < of.length; at += 1 + below(25)) {
    of.changes.push_back({static_cast<double>(at), below(5) == 0 ? 0 : below(13)});
  }
  for (std::int64_t at = 0; at < of.length; at += 1 + below(60)) {
    of.prices.push_back({static_cast<double>(at), static_cast<double>(below(100))});
  }
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
  return of;
}

ClockedSource source_of(const Case& of) {
  return {Availability(of.changes, static_cast<double>(of.length), "cloud", TraceEnd::stop, {},
                       of.prices),
          [fewest = of.fewest](std::int64_t devices,
                               const SourceProgress&) -> std::optional<TraceStep> {
            if (devices < fewest) return std::nullopt;
            return TraceStep{.batch_size = kMinibatches, .cores = devices};
          },
          ClockOptions{.cluster = of.cluster,
                       .minibatch_size = 1,
                       .on_idle = of.on_idle,
                       .max_batch = kMinibatches}};
}

// The same without any of the project's clock: a loop over seconds with a list of devices.
class Reckoning {
 public:
  explicit Reckoning(const Case& of) : of_(of), market_(of.cluster.market) {}

  // Takes a step; false if none ends before the availability does.
  bool step() {
    bool saved = false;
    bool idle = false;
    std::vector<std::int64_t> queue;
    std::size_t done = 0;
    const auto lose = [&] {
      if (market_.loses == Loses::checkpoint && !saved) queue = unsaved_;
      done = 0;
    };
    const std::int64_t notice = whole(market_.notice_seconds);
    while (true) {
      arrive();
      std::int64_t use = joined();
      const bool repeats = done < queue.size();
      const bool saves = !repeats && of_.cluster.checkpoint_steps > 0 &&
                         (steps_ + 1) % of_.cluster.checkpoint_steps == 0;
      const auto duration = [&] {
        const std::int64_t seconds = (kMinibatches + use - 1) / use;
        return seconds + (saves ? whole(of_.cluster.checkpoint_seconds) : 0);
      };
      if (market_.loses == Loses::step) {
        for (std::int64_t s = 1; use >= of_.fewest && s <= notice && s < duration(); ++s) {
          if (offered(now_ + s) >= use) continue;
          use = std::min(use, offered(now_ + s));
          s = 0;
        }
      }
      if (use < of_.fewest) {
        if (!anything_follows()) return false;
        if (joined() == 0) lose();
        const bool joins = joined() < of_.fewest && std::ssize(devices_) >= of_.fewest;
        // Something changes in the end, and the kind of the time before is that of its beginning.
        const std::int64_t until = next_change();
        while (now_ < until) pass(0, joins ? time_.join_seconds : time_.idle_seconds);
        idle = idle || !joins;
        continue;
      }
      if (idle && of_.on_idle == OnIdle::checkpoint && steps_ > 0) {
        idle = false;
        restart(use);
        continue;
      }
      idle = false;
      const std::int64_t end = now_ + duration();
      std::int64_t lost_at = 0;
      for (std::int64_t s = now_ + 1; s < end && lost_at == 0; ++s) {
        if (offered(s) < use) lost_at = s;
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
        ++steps_;
        return true;
      }
      std::int64_t cores = use;
      while (now_ < lost_at - notice) pass(cores, time_.lost_seconds);
      if (market_.loses == Loses::checkpoint) {
        const std::int64_t saving = whole(of_.cluster.checkpoint_seconds);
        if (notice > 0 && now_ + saving <= lost_at) {
          for (std::int64_t s = 0; s < saving; ++s) pass(cores, time_.checkpoint_seconds);
          if (!repeats) {
            saved = true;
            queue.clear();
          }
        }
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

  [[nodiscard]] std::int64_t offered(std::int64_t seconds) const {
    if (seconds >= of_.length) return 0;
    return at(of_.changes, seconds).devices / market_.machine * market_.machine;
  }
  [[nodiscard]] double price() const {
    if (!of_.cluster.price.of_trace) return of_.cluster.price.constant;
    return now_ < of_.length ? at(of_.prices, now_).price : 0;
  }
  [[nodiscard]] std::int64_t joined() const {
    return std::ranges::count_if(devices_, [&](const Device& of) { return of.joins <= now_; });
  }
  [[nodiscard]] std::int64_t next_change() const {
    std::int64_t next = of_.length;
    const auto consider = [&](std::int64_t time) {
      if (time > now_) next = std::min(next, time);
    };
    for (std::int64_t s = now_ + 1; s < of_.length; ++s) {
      if (at(of_.changes, s).devices != at(of_.changes, s - 1).devices) consider(s);
    }
    for (const Device& device : devices_) {
      consider(device.paid_from);
      consider(device.joins);
    }
    return next;
  }
  [[nodiscard]] bool anything_follows() const { return now_ < of_.length; }

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
    arrive();
    const auto of = [&](std::int64_t devices) { return devices < of_.fewest ? 0 : devices; };
    cores = std::min(cores, of(joined()));
    std::int64_t paid = 0;
    for (Device& device : devices_) {
      if (device.paid_from > now_) continue;
      ++paid;
      device.cost += price() / kHour;
    }
    if (market_.billing == Billing::steps) paid = cores + of(paid) - of(joined());
    time_.core_seconds += static_cast<double>(paid);
    time_.money += static_cast<double>(paid) * price() / kHour;
    kind += 1;
    ++now_;
  }
  void pass(std::int64_t&& cores, double& kind) { pass(cores, kind); }

  void restart(std::int64_t cores) {
    ++time_.restarts;
    const std::int64_t end = now_ + whole(of_.cluster.restart_seconds);
    while (now_ < end) pass(cores, time_.restart_seconds);
  }

  const Case& of_;
  const MarketModel market_;
  std::int64_t now_ = 0;
  std::int64_t steps_ = 0;
  std::vector<Device> devices_;
  std::vector<std::int64_t> unsaved_;
  ClockTime time_;
};

TEST(Market, CostsWhatSecondsOfDevicesAddUpTo) {
  std::int64_t steps = 0;
  ClockTime all;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Case of = random_case(seed);
    ClockedSource source = source_of(of);
    Reckoning reckoning(of);
    for (std::int64_t i = 0;; ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      const SourceProgress progress{.step = StepIndex{i}, .epoch = {}};
      const auto step = source.next(progress);
      ASSERT_EQ(step.has_value(), reckoning.step());
      if (!step) break;
      source.taken(*step, progress);
      const ClockTime time = source.time();
      const ClockTime expected = reckoning.time();
      EXPECT_EQ(time.restarts, expected.restarts);
      for (const auto part :
           {&ClockTime::seconds, &ClockTime::core_seconds, &ClockTime::money,
            &ClockTime::idle_seconds, &ClockTime::lost_seconds, &ClockTime::restart_seconds,
            &ClockTime::join_seconds, &ClockTime::redone_seconds, &ClockTime::checkpoint_seconds}) {
        ASSERT_NEAR(time.*part, expected.*part, 1e-9 * (1 + std::abs(expected.*part)));
        all.*part += expected.*part;
      }
      ++steps;
    }
  }
  // Nothing of it is rare.
  EXPECT_GT(steps, 2000);
  EXPECT_GT(all.join_seconds, 5000);
  EXPECT_GT(all.redone_seconds, 5000);
  EXPECT_GT(all.checkpoint_seconds, 5000);
}

// The example of docs/cluster.md.
TEST(Market, IsPaidForWhileItJoins) {
  ClusterModel cluster{.substep_seconds = 1};
  cluster.market = {.provision_seconds = 1, .join_seconds = 2};
  cluster.price.constant = kHour;
  ClockedSource source(
      Availability({{0, 2}, {4, 3}}, 100, "cloud", TraceEnd::stop),
      [](std::int64_t devices, const SourceProgress&) {
        return std::optional(TraceStep{.batch_size = 6, .cores = devices});
      },
      ClockOptions{.cluster = cluster, .minibatch_size = 1, .max_batch = 6});
  std::vector<ClockTime> times;
  for (std::int64_t i = 0; i < 2; ++i) {
    const SourceProgress progress{.step = StepIndex{i}, .epoch = {}};
    source.taken(*source.next(progress), progress);
    times.push_back(source.time());
  }
  EXPECT_EQ(times[0],
            (ClockTime{.seconds = 6, .core_seconds = 11, .money = 11, .join_seconds = 3}));
  EXPECT_EQ(times[1],
            (ClockTime{.seconds = 9, .core_seconds = 18, .money = 18, .join_seconds = 3}));
}

// Failures at random times lose what is done since the last checkpoint. Work of w seconds between
// two of them, with its checkpoint, takes (1 / rate + restart) (exp(rate w) - 1) seconds on
// average, since a restart begins anew.
TEST(Market, FailsAsOftenAsItsMeanTimeBetweenFailuresSays) {
  constexpr std::int64_t kRuns = 400;
  constexpr std::int64_t kSteps = 100;
  constexpr std::int64_t kInterval = 5;
  double sum = 0;
  double squares = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    ClusterModel cluster{.substep_seconds = 2,
                         .checkpoint_steps = kInterval,
                         .checkpoint_seconds = 3,
                         .restart_seconds = 4};
    cluster.market = {.loses = Loses::checkpoint, .mtbf_seconds = 20, .mtbf_seed = seed};
    ClockedSource source(
        Availability({{0, 1}}, 100, "one", TraceEnd::hold),
        [](std::int64_t, const SourceProgress&) {
          return std::optional(TraceStep{.batch_size = 1});
        },
        ClockOptions{.cluster = cluster, .minibatch_size = 1, .max_batch = 1});
    for (std::int64_t i = 0; i < kSteps; ++i) {
      const SourceProgress progress{.step = StepIndex{i}, .epoch = {}};
      source.taken(*source.next(progress), progress);
    }
    const ClockTime& time = source.time();
    EXPECT_NEAR(time.training_seconds(), 2 * kSteps, 1e-6);
    EXPECT_NEAR(time.checkpoint_seconds, 3 * kSteps / kInterval, 1e-6);
    EXPECT_NEAR(time.restart_seconds, 4.0 * static_cast<double>(time.restarts), 1e-6);
    sum += time.seconds;
    squares += time.seconds * time.seconds;
  }
  const double mean = sum / kRuns;
  const double error = std::sqrt((squares / kRuns - mean * mean) / kRuns);
  const double rate = 1.0 / 20;
  const double expected =
      kSteps / kInterval * (1 / rate + 4) * (std::exp(rate * (2 * kInterval + 3)) - 1);
  EXPECT_NEAR(mean, expected, 4 * error);
  EXPECT_LT(error, 0.02 * expected);
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
    return test::error_of([&] {
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
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Case of = random_case(seed);
    ClockedSource whole = source_of(of);
    State state;
    for (std::int64_t i = 0;; ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      // Each step is taken by a source of its own, from the state after the step before.
      ClockedSource again = source_of(of);
      if (i > 0) load_state(again, state, i);
      const SourceProgress progress{.step = StepIndex{i}, .epoch = {}};
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
