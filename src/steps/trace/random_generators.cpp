// Random generators; each gives the same availability for the same seed.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "availability_parts.hpp"
#include "base/core/portable_math.hpp"
#include "base/core/seconds.hpp"

namespace rubato::detail {

namespace {

struct WalkOptions {
  std::int64_t start;
  std::int64_t low;
  std::int64_t high;
  std::int64_t move;
  double length;
  std::int64_t every;
  std::int64_t seed;
};

AvailabilityParts make_walk(const WalkOptions& options) {
  constexpr std::int64_t kStream = 1;
  AvailabilityParts made{.length = options.length,
                         .sample_gap = static_cast<double>(options.every)};
  Draws draws(options.seed, kStream);
  std::int64_t devices = options.start;
  for (std::int64_t time = 0; static_cast<double>(time) < options.length; time += options.every) {
    made.changes.push_back({.seconds = static_cast<double>(time), .devices = devices});
    devices += draws.whole(-options.move, options.move);
    // A move beyond a bound is reflected at it.
    if (devices < options.low) devices = 2 * options.low - devices;
    if (devices > options.high) devices = 2 * options.high - devices;
    devices = std::clamp(devices, options.low, options.high);
  }
  return made;
}

struct SpotOptions {
  std::int64_t most;
  std::int64_t start;
  // Mean durations, in seconds.
  double wait;
  double life;
  std::int64_t bulk;
  double length;
  std::int64_t seed;
};

// A Markov process in continuous time: the time to the next event is exponential, and the kind of
// event is drawn in proportion to the rates. Events are rounded up to whole seconds.
AvailabilityParts make_spot(const SpotOptions& options) {
  constexpr std::int64_t kStream = 2;
  AvailabilityParts made{.changes = {{0, options.start}}, .length = options.length};
  Draws draws(options.seed, kStream);
  // The mean number of devices preempted at once, by which the rate is divided so that each lives
  // for `life` while there are at least `bulk` devices; fewer live longer (docs/traces.md).
  const double mean_bulk = static_cast<double>(1 + options.bulk) / 2;
  std::int64_t devices = options.start;
  double time = 0;
  std::int64_t events = 0;
  while (true) {
    const double arrivals = static_cast<double>(options.most - devices) / options.wait;
    const double preemptions = static_cast<double>(devices) / (options.life * mean_bulk);
    time += -exact::log1p(-draws.share()) / (arrivals + preemptions);
    const double second = std::ceil(time);
    if (second >= options.length) return made;
    if (++events > kMostChanges) {
      throw Error(
          fmt::format("spot: more than {} arrivals and preemptions; accepted: fewer hours "
                      "or devices, or longer wait and life",
                      kMostChanges));
    }
    if (draws.share() * (arrivals + preemptions) < arrivals) {
      ++devices;
    } else {
      devices -= std::min(devices, draws.whole(1, options.bulk));
    }
    if (made.changes.back().seconds == second) made.changes.pop_back();
    made.changes.push_back({.seconds = second, .devices = devices});
  }
}

}  // namespace

Generation read_walk(Spec& spec) {
  WalkOptions options{};
  options.start = spec.whole("start", 16, 0, kMaxCores);
  options.low = spec.whole("low", 0, 0, kMaxCores);
  options.high = spec.whole("high", 32, 1, kMaxCores);
  options.move = spec.whole("move", 2, 1, kMaxCores);
  options.length = read_hours(spec);
  options.every = read_every(spec, 300, options.length);
  options.seed = read_seed(spec);
  if (options.start < options.low || options.start > options.high) {
    spec.reject("start", fmt::format("{} is not within the bounds; accepted: {} to {}",
                                     options.start, options.low, options.high));
  }
  return [=] { return make_walk(options); };
}

Generation read_spot(Spec& spec) {
  static constexpr RealRange kMeans{0.001, 1e6, true, true, "a number from 0.001 to 1e6"};
  SpotOptions options{};
  options.most = spec.whole("most", 32, 1, kMaxCores);
  options.start = spec.whole("start", Unset{"as most"}, 0, kMaxCores).value_or(options.most);
  options.wait = kSecondsOfHour * spec.real("wait", 0.5, kMeans);
  options.life = kSecondsOfHour * spec.real("life", 4, kMeans);
  options.bulk = spec.whole("bulk", 4, 1, kMaxCores);
  options.length = read_hours(spec);
  options.seed = read_seed(spec);
  if (options.start > options.most) {
    spec.reject("start", fmt::format("{} is above {}; accepted: 0 to {}", options.start,
                                     options.most, options.most));
  }
  return [=] { return make_spot(options); };
}

}  // namespace rubato::detail
