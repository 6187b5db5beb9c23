// Generators without chance, and the daily cycle, whose noise is optional.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "availability_parts.hpp"
#include "base/core/portable_math.hpp"
#include "base/core/seconds.hpp"

namespace rubato::detail {

namespace {

constexpr auto kMostSeconds = static_cast<std::int64_t>(kMaxAvailabilitySeconds);

struct Level {
  std::int64_t devices;
  std::int64_t seconds;
};

// The levels one after the other, repeated `cycles` times.
AvailabilityParts repeated(const std::vector<Level>& levels, std::int64_t cycles) {
  AvailabilityParts made;
  for (std::int64_t cycle = 0; cycle < cycles; ++cycle) {
    for (const auto& [devices, seconds] : levels) {
      made.changes.push_back({.seconds = made.length, .devices = devices});
      made.length += static_cast<double>(seconds);
    }
  }
  return made;
}

std::int64_t read_cycles(Spec& spec, std::int64_t fallback, const std::vector<Level>& levels) {
  const std::int64_t cycles = spec.whole("cycles", fallback, 1, kMostChanges);
  std::int64_t seconds = 0;
  for (const Level& level : levels) seconds += level.seconds;
  const auto count = static_cast<std::int64_t>(levels.size());
  if (cycles > kMostChanges / count || cycles > kMostSeconds / seconds) {
    spec.reject("cycles", fmt::format("{} of {} levels and {} s; accepted: up to {} levels and {} "
                                      "s (ten years) in all",
                                      cycles, count, seconds, kMostChanges, kMostSeconds));
  }
  return cycles;
}

std::vector<Level> saw_levels(Spec& spec) {
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
  return levels;
}

struct DailyOptions {
  std::int64_t low;
  std::int64_t high;
  double peak;
  std::int64_t noise;
  std::int64_t seed;
  double length;
  std::int64_t every;
};

AvailabilityParts make_daily(const DailyOptions& options) {
  constexpr std::int64_t kStream = 3;
  AvailabilityParts made{.length = options.length,
                         .sample_gap = static_cast<double>(options.every)};
  Draws draws(options.seed, kStream);
  const double middle = static_cast<double>(options.low + options.high) / 2;
  const double swing = static_cast<double>(options.high - options.low) / 2;
  for (std::int64_t at = 0; static_cast<double>(at) < options.length; at += options.every) {
    const auto time = static_cast<double>(at);
    const double days = (time / kSecondsOfHour - options.peak) / 24;
    const std::int64_t devices = std::llround(middle + swing * exact::cos_of_turns(days)) +
                                 draws.whole(-options.noise, options.noise);
    made.changes.push_back(
        {.seconds = time, .devices = std::clamp(devices, options.low, options.high)});
  }
  return made;
}

}  // namespace

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
  const std::int64_t cycles = read_cycles(spec, 1, levels);
  return [=] { return repeated(levels, cycles); };
}

Generation read_saw(Spec& spec) {
  const std::vector<Level> levels = saw_levels(spec);
  const std::int64_t cycles = read_cycles(spec, 4, levels);
  return [=] { return repeated(levels, cycles); };
}

Generation read_daily(Spec& spec) {
  static constexpr RealRange kHourOfDay{0, 24, true, false, "a number from 0 to below 24"};
  DailyOptions options{};
  options.low = spec.whole("low", 8, 0, kMaxCores);
  options.high = spec.whole("high", 64, 1, kMaxCores);
  options.peak = spec.real("peak", 3, kHourOfDay);
  options.length = read_hours(spec);
  options.every = read_every(spec, 600, options.length);
  options.noise = spec.whole("noise", 2, 0, kMaxCores);
  options.seed = read_seed(spec);
  if (options.low > options.high) {
    spec.reject("low", fmt::format("{} is above {}; accepted: 0 to {}", options.low, options.high,
                                   options.high));
  }
  if (options.noise == 0) spec.refuse("seed", "there is no noise; accepted: with noise=N");
  return [=] { return make_daily(options); };
}

}  // namespace rubato::detail
