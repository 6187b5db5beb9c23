#include "fit_machines.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/core/seconds.hpp"

namespace rubato {

namespace {

// A number of machines from some hour on.
struct Count {
  double hours = 0;
  std::int64_t machines = 0;
};

MachineCounts counts_until(double end, const std::vector<Count>& counts) {
  MachineCounts found{.hours = end, .start = counts.front().machines};
  found.most = std::ranges::max(counts, {}, &Count::machines).machines;
  double arrived = 0;
  double losses = 0;
  double lost = 0;
  double machine_hours = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double next = i + 1 < counts.size() ? counts[i + 1].hours : end;
    machine_hours += static_cast<double>(counts[i].machines) * (next - counts[i].hours);
    const std::int64_t gained = i == 0 ? 0 : counts[i].machines - counts[i - 1].machines;
    if (gained > 0) arrived += static_cast<double>(gained);
    if (gained >= 0) continue;
    found.most_lost = std::max(found.most_lost, -gained);
    lost -= static_cast<double>(gained);
    ++losses;
  }
  found.mean = machine_hours / end;
  if (losses > 0) found.mean_lost = lost / losses;
  if (arrived > 0) found.wait = (static_cast<double>(found.most) - found.mean) * end / arrived;
  return found;
}

// The arguments that both generators share, with a comma behind each.
std::string common_text(const std::optional<MachineCounts>& counts, std::int64_t machine) {
  constexpr double kShortest = 0.001;
  std::string text;
  if (counts) text += fmt::format("most={},start={},", counts->most, counts->start);
  if (machine > 1) text += fmt::format("machine={},", machine);
  if (counts && counts->wait) {
    text += fmt::format("wait={:.6g},", std::max(kShortest, *counts->wait));
  }
  return text;
}

}  // namespace

std::optional<MachineCounts> counts_of(std::span<const MachineLife> lives) {
  struct Event {
    double hours;
    std::int64_t gained;
  };
  std::vector<Event> events;
  for (const MachineLife& life : lives) {
    if (!life.begin) continue;
    events.push_back({*life.begin, 1});
    events.push_back({*life.begin + life.hours, -1});
  }
  std::ranges::sort(events, {},
                    [](const Event& event) { return std::pair(event.hours, event.gained); });
  if (events.empty()) return std::nullopt;
  const double begin = events.front().hours;
  const double end = events.back().hours - begin;
  std::vector<Count> counts;
  std::int64_t running = 0;
  for (const Event& event : events) {
    const double hours = event.hours - begin;
    running += event.gained;
    // Lives end with the record, and not by a loss.
    if (hours >= end) break;
    if (counts.empty() || counts.back().hours != hours) counts.push_back({.hours = hours});
    counts.back().machines = running;
  }
  if (counts.empty()) return std::nullopt;
  return counts_until(end, counts);
}

MachineCounts counts_of(const Availability& availability) {
  std::int64_t machine = 0;
  for (const AvailabilityChange& change : availability.changes()) {
    machine = std::gcd(machine, change.devices);
  }
  std::vector<Count> counts;
  for (const AvailabilityChange& change : availability.changes()) {
    if (!availability.lasts(change)) continue;
    counts.push_back({change.seconds / kSecondsOfHour, change.devices / machine});
  }
  MachineCounts found = counts_until(availability.length() / kSecondsOfHour, counts);
  found.machine = machine;
  return found;
}

std::vector<MachineLife> hours_between_losses(const Availability& availability,
                                              const MachineCounts& counts) {
  std::vector<MachineLife> lives(1);
  const std::vector<AvailabilityChange>& changes = availability.changes();
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (!availability.lasts(changes[i])) continue;
    if (i > 0 && changes[i].devices < changes[i - 1].devices) {
      lives.back().preempted = true;
      lives.emplace_back();
    }
    const double next = i + 1 < changes.size() ? changes[i + 1].seconds : availability.length();
    const std::int64_t machines = changes[i].devices / counts.machine;
    lives.back().hours +=
        static_cast<double>(machines) * (next - changes[i].seconds) / kSecondsOfHour;
  }
  return lives;
}

std::string machines_text(const LifeLaw& law, const std::optional<MachineCounts>& counts,
                          std::int64_t machine, double hours, std::int64_t seed) {
  return fmt::format("machines:{}{},hours={:.6g},seed={}", common_text(counts, machine), law.text(),
                     hours, seed);
}

std::string spot_text(const LifeLaw& law, const MachineCounts& counts, double hours,
                      std::int64_t seed) {
  // A loss takes 1 to `bulk` machines, each number as often as the others, so the mean number is
  // (1 + bulk) / 2, and a machine lives for the hours of all between two losses by that number.
  const std::int64_t bulk = std::max<std::int64_t>(1, std::llround(2 * counts.mean_lost - 1));
  const double life = 2 * law.life / static_cast<double>(1 + bulk);
  return fmt::format("spot:{}life={:.6g},bulk={},hours={:.6g},seed={}",
                     common_text(counts, counts.machine), life, bulk, hours, seed);
}

}  // namespace rubato
