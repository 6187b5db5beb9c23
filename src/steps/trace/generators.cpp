// A generator is a row of kGenerators, whose function reads all arguments from a Spec and returns a
// Generation, the function that makes the availability: descriptions can be checked and listed
// without generating anything. A random generator draws from a stream of its own number, so that
// generators with the same seed are independent. Logarithms and cosines come from
// portable_math.hpp, so the same text gives the same availability on every machine. The generator
// `machines` has its own file.

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/steps/availability.hpp>

#include "availability_parts.hpp"
#include "base/core/portable_math.hpp"
#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"
#include "generator_parts.hpp"

namespace rubato {

namespace {

using detail::AvailabilityParts;
using detail::Draws;
using detail::Generation;
using detail::kMostChanges;
using detail::kMostSeconds;
using detail::read_hours;
using detail::read_machine;
using detail::read_seed;

// Seconds between two samples.
std::int64_t read_every(Spec& spec, std::int64_t fallback, double length) {
  const std::int64_t every = spec.whole("every", fallback, 1, kMostSeconds);
  if (length / static_cast<double>(every) > static_cast<double>(kMostChanges)) {
    spec.reject("every", fmt::format("{} s is too often for {} hours; accepted: up to {} samples",
                                     every, length / kSecondsOfHour, kMostChanges));
  }
  return every;
}

// The availability that has devices(seconds) in each sample.
template <class Devices>
AvailabilityParts sampled(double length, std::int64_t every, const Devices& devices) {
  AvailabilityParts made{.length = length, .sample_gap = static_cast<double>(every)};
  for (std::int64_t at = 0; static_cast<double>(at) < length; at += every) {
    const auto seconds = static_cast<double>(at);
    made.changes.push_back({.seconds = seconds, .devices = devices(seconds)});
  }
  return made;
}

struct Level {
  std::int64_t devices;
  std::int64_t seconds;
};

// The levels one after the other, as often as `cycles` says.
Generation read_cycles(Spec& spec, std::int64_t fallback, const std::vector<Level>& levels) {
  const std::int64_t cycles = spec.whole("cycles", fallback, 1, kMostChanges);
  std::int64_t seconds = 0;
  for (const Level& level : levels) seconds += level.seconds;
  const auto count = static_cast<std::int64_t>(levels.size());
  if (cycles > kMostChanges / count || cycles > kMostSeconds / seconds) {
    spec.reject("cycles", fmt::format("{} of {} levels and {} s; accepted: up to {} levels and {} "
                                      "s (ten years) in all",
                                      cycles, count, seconds, kMostChanges, kMostSeconds));
  }
  return [=] {
    AvailabilityParts made;
    for (std::int64_t cycle = 0; cycle < cycles; ++cycle) {
      for (const Level& level : levels) {
        made.changes.push_back({.seconds = made.length, .devices = level.devices});
        made.length += static_cast<double>(level.seconds);
      }
    }
    return made;
  };
}

Generation read_constant(Spec& spec) {
  const std::int64_t devices = spec.whole("devices", 8, 0, kMaxCores);
  const double length = read_hours(spec);
  return [=] { return AvailabilityParts{.changes = {{0, devices}}, .length = length}; };
}

Generation read_steps(Spec& spec) {
  const std::vector<std::int64_t> devices = spec.wholes("devices", {4, 8, 16, 8}, 0, kMaxCores);
  const std::vector<std::int64_t> seconds = spec.wholes("seconds", {3600}, 1, kMostSeconds);
  if (seconds.size() != 1 && seconds.size() != devices.size()) {
    spec.reject("seconds", fmt::format("{} for {} numbers of devices; accepted: 1 or {}",
                                       seconds.size(), devices.size(), devices.size()));
  }
  std::vector<Level> levels;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    levels.push_back({devices[i], seconds[seconds.size() == 1 ? 0 : i]});
  }
  return read_cycles(spec, 1, levels);
}

Generation read_saw(Spec& spec) {
  constexpr std::int64_t kMostLevels = 1000;
  const std::int64_t high = spec.whole("high", 64, 1, kMaxCores);
  const std::int64_t low = spec.whole("low", 8, 0, kMaxCores);
  const std::int64_t count = spec.whole("levels", 8, 2, kMostLevels);
  const std::int64_t top = spec.whole("top", 600, 1, kMostSeconds);
  const std::int64_t between = spec.whole("between", 600, 1, kMostSeconds);
  const std::int64_t bottom = spec.whole("bottom", 600, 1, kMostSeconds);
  if (low >= high) {
    spec.reject("low", fmt::format("{} is not below {}; accepted: 0 to {}", low, high, high - 1));
  }
  if (count == 2) spec.refuse("between", "with levels=2 there is none; accepted: with 3 and more");
  std::vector<Level> down{{high, top}};
  for (std::int64_t level = count - 2; level > 0; --level) {
    const double share = static_cast<double>(level) / static_cast<double>(count - 1);
    down.push_back({low + std::llround(static_cast<double>(high - low) * share), between});
  }
  std::vector<Level> levels = down;
  levels.push_back({low, bottom});
  levels.insert(levels.end(), down.rbegin(), down.rend() - 1);
  return read_cycles(spec, 4, levels);
}

Generation read_walk(Spec& spec) {
  constexpr std::int64_t kStream = 1;
  const std::int64_t start = spec.whole("start", 16, 0, kMaxCores);
  const std::int64_t low = spec.whole("low", 0, 0, kMaxCores);
  const std::int64_t high = spec.whole("high", 32, 1, kMaxCores);
  const std::int64_t move = spec.whole("move", 2, 1, kMaxCores);
  const double length = read_hours(spec);
  const std::int64_t every = read_every(spec, 300, length);
  const std::int64_t seed = read_seed(spec);
  if (start < low || start > high) {
    spec.reject("start",
                fmt::format("{} is not within the bounds; accepted: {} to {}", start, low, high));
  }
  return [=] {
    Draws draws(seed, kStream);
    std::int64_t next = start;
    return sampled(length, every, [&](double) {
      const std::int64_t devices = next;
      next += draws.whole(-move, move);
      // A move beyond a bound is reflected at it.
      if (next < low) next = 2 * low - next;
      if (next > high) next = 2 * high - next;
      next = std::clamp(next, low, high);
      return devices;
    });
  };
}

// A Markov process in continuous time: the time to the next event is exponential, and the kind of
// event is drawn in proportion to the rates. Events are rounded up to whole seconds.
Generation read_spot(Spec& spec) {
  constexpr std::int64_t kStream = 2;
  static constexpr RealRange kMeans{0.001, 1e6, true, true, "a number from 0.001 to 1e6"};
  const std::int64_t most = spec.whole("most", 32, 1, kMaxCores);
  const std::int64_t start = spec.whole("start", Unset{"as most"}, 0, kMaxCores).value_or(most);
  // Mean durations, in seconds.
  const double wait = kSecondsOfHour * spec.real("wait", 0.5, kMeans);
  const double life = kSecondsOfHour * spec.real("life", 4, kMeans);
  const std::int64_t bulk = spec.whole("bulk", 4, 1, kMaxCores);
  const std::int64_t machine = read_machine(spec, most);
  const double length = read_hours(spec);
  const std::int64_t seed = read_seed(spec);
  if (start > most) {
    spec.reject("start", fmt::format("{} is above {}; accepted: 0 to {}", start, most, most));
  }
  return [=] {
    AvailabilityParts made{.changes = {{0, start * machine}}, .length = length};
    Draws draws(seed, kStream);
    // The mean number of devices preempted at once, by which the rate is divided so that each lives
    // for `life` while there are at least `bulk` devices; fewer live longer (docs/traces.md).
    const double mean_bulk = static_cast<double>(1 + bulk) / 2;
    std::int64_t devices = start;
    double time = 0;
    for (std::int64_t events = 0;; ++events) {
      const double arrivals = static_cast<double>(most - devices) / wait;
      const double preemptions = static_cast<double>(devices) / (life * mean_bulk);
      time += -exact::log1p(-draws.share()) / (arrivals + preemptions);
      const double second = std::ceil(time);
      if (second >= length) return made;
      if (events == kMostChanges) {
        throw_error(
            "spot: more than {} arrivals and preemptions; accepted: fewer hours or devices, or "
            "longer wait and life",
            kMostChanges);
      }
      if (draws.share() * (arrivals + preemptions) < arrivals) {
        ++devices;
      } else {
        devices -= std::min(devices, draws.whole(1, bulk));
      }
      if (made.changes.back().seconds == second) made.changes.pop_back();
      made.changes.push_back({.seconds = second, .devices = devices * machine});
    }
  };
}

Generation read_daily(Spec& spec) {
  constexpr std::int64_t kStream = 3;
  static constexpr RealRange kHourOfDay{0, 24, true, false, "a number from 0 to below 24"};
  const std::int64_t low = spec.whole("low", 8, 0, kMaxCores);
  const std::int64_t high = spec.whole("high", 64, 1, kMaxCores);
  const double peak = spec.real("peak", 3, kHourOfDay);
  const double length = read_hours(spec);
  const std::int64_t every = read_every(spec, 600, length);
  const std::int64_t noise = spec.whole("noise", 2, 0, kMaxCores);
  const std::int64_t seed = read_seed(spec);
  if (low > high) {
    spec.reject("low", fmt::format("{} is above {}; accepted: 0 to {}", low, high, high));
  }
  if (noise == 0) spec.refuse("seed", "there is no noise; accepted: with noise=N");
  return [=] {
    Draws draws(seed, kStream);
    const double middle = static_cast<double>(low + high) / 2;
    const double swing = static_cast<double>(high - low) / 2;
    return sampled(length, every, [&](double seconds) {
      const double days = (seconds / kSecondsOfHour - peak) / 24;
      const std::int64_t devices =
          std::llround(middle + swing * exact::cos_of_turns(days)) + draws.whole(-noise, noise);
      return std::clamp(devices, low, high);
    });
  };
}

struct GeneratorRow {
  std::string_view name;
  std::string_view help;
  Generation (*read)(Spec& spec);
};

constexpr std::array<GeneratorRow, 7> kGenerators{
    {{"constant", "always the same number of devices", read_constant},
     {"steps", "one number of devices after the other, each for its time", read_steps},
     {"saw", "down from high to low in equal levels, and up again", read_saw},
     {"walk", "a random walk: every `every` seconds up or down by at most `move`, between bounds",
      read_walk},
     {"spot",
      "a spot market: each device that is missing arrives, and each that is there is preempted, at "
      "random, up to `bulk` of them at once",
      read_spot},
     {"machines",
      "machines whose lifetimes have a law, such as one that examples/python/fit_lives.py fits; "
      "missing ones arrive at random",
      detail::read_machines},
     {"daily", "a cycle of 24 hours, as of a cloud that others use by day", read_daily}}};

Generation generation_of(const std::string& text) {
  Spec spec(text);
  Generation make = find_row("generator", spec.name(), kGenerators).read(spec);
  spec.finish();
  return make;
}

}  // namespace

Availability generate_availability(const std::string& text, TraceEnd end) {
  AvailabilityParts made = generation_of(text)();
  return {std::move(made.changes), made.length, text, end, made.sample_gap};
}

void require_generator(const std::string& text) {
  static_cast<void>(generation_of(text));
}

std::vector<Strategy> availability_generators() {
  return strategies_of(
      kGenerators, [](const GeneratorRow& row, Spec& spec) { static_cast<void>(row.read(spec)); });
}

bool is_generator(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  return std::ranges::find(kGenerators, name, &GeneratorRow::name) != kGenerators.end();
}

}  // namespace rubato
