#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include <fmt/format.h>

#include "base/core/throw_error.hpp"
#include "generator_parts.hpp"
#include "life_law.hpp"

namespace rubato::detail {

namespace {

struct Machines {
  std::int64_t most;
  std::int64_t start;
  std::int64_t machine;
  // Seconds.
  double wait;
  double length;
  LifeLaw law;
  std::int64_t seed;
};

// Machines are renewed: each lives for a time drawn when it arrives, whatever becomes of the
// others. Each missing one arrives after an exponential time, which may be drawn anew at each event
// because it has no memory. Events are rounded up to whole seconds.
class RunningMachines {
 public:
  explicit RunningMachines(const Machines& machines) : machines_(machines) {
    for (std::int64_t i = 0; i < machines.start; ++i) add(0);
  }

  // Carries out the next event after `time`, and returns its time; both are seconds.
  double advance(double time) {
    const std::int64_t missing = machines_.most - running();
    double arrival = kNever;
    if (missing > 0) {
      arrival =
          time - exact::log1p(-waits_.share()) * machines_.wait / static_cast<double>(missing);
    }
    if (ends_.empty() || arrival < ends_.top()) {
      add(arrival);
      return arrival;
    }
    const double end = ends_.top();
    ends_.pop();
    return end;
  }
  [[nodiscard]] std::int64_t running() const { return static_cast<std::int64_t>(ends_.size()); }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  void add(double time) {
    ends_.push(time + kSecondsOfHour * machines_.law.quantile(lives_.share()));
  }

  const Machines& machines_;
  Draws waits_{machines_.seed, 4};
  Draws lives_{machines_.seed, 5};
  std::priority_queue<double, std::vector<double>, std::greater<>> ends_;
};

AvailabilityParts made_of(const Machines& machines) {
  AvailabilityParts made{.changes = {{0, machines.start * machines.machine}},
                         .length = machines.length};
  RunningMachines running(machines);
  double time = 0;
  for (std::int64_t events = 0;; ++events) {
    time = running.advance(time);
    const double second = std::ceil(time);
    if (second >= machines.length) return made;
    if (events == kMostChanges) {
      throw_error(
          "machines: more than {} arrivals and ends; accepted: fewer hours or machines, or longer "
          "wait and lives",
          kMostChanges);
    }
    if (made.changes.back().seconds == second) made.changes.pop_back();
    made.changes.push_back({.seconds = second, .devices = running.running() * machines.machine});
  }
}

}  // namespace

Generation read_machines(Spec& spec) {
  static constexpr RealRange kWaits{0.001, 1e6, true, true, "a number from 0.001 to 1e6"};
  Machines machines{};
  machines.most = spec.whole("most", 8, 1, kMaxCores);
  machines.machine = read_machine(spec, machines.most);
  machines.start = spec.whole("start", Unset{"as most"}, 0, kMaxCores).value_or(machines.most);
  machines.wait = kSecondsOfHour * spec.real("wait", 0.5, kWaits);
  machines.law = LifeLaw::read(spec);
  machines.length = read_hours(spec);
  machines.seed = read_seed(spec);
  if (machines.start > machines.most) {
    spec.reject("start", fmt::format("{} is above {}; accepted: 0 to {}", machines.start,
                                     machines.most, machines.most));
  }
  return [machines] { return made_of(machines); };
}

}  // namespace rubato::detail
