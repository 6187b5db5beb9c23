// Times are seconds in the interface; at() and next_change() convert them to whole microseconds and
// compute with integers, so comparisons and the remainders of cycles are exact. A time beyond the
// length is first mapped into it (within()), and the last change before it is then found by binary
// search. The constructor rounds, checks and merges the changes in place. Zones whose files have
// times of one clock are shifted to a common second 0 by making each availability again with a
// delay (put_on_clock()).

#include <algorithm>
#include <iterator>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/steps/availability.hpp>

#include "availability_parts.hpp"
#include "base/core/check.hpp"
#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

using detail::microseconds_of;
using detail::seconds_of;

// The largest number of rows that are written as samples; beyond it, changes are written.
constexpr std::int64_t kMostSamples = 10'000'000;
// A double resolves microseconds up to this time, with room for what follows a change.
constexpr double kLatest = 3e9;

double rounded(double seconds) {
  return seconds_of(microseconds_of(seconds));
}

void require_length(double length, const std::string& source) {
  if (length > 0 && length <= kMaxAvailabilitySeconds && microseconds_of(length) > 0) return;
  throw_error("{}: it lasts {} s; accepted: more than 0 s, up to {} s (ten years)", source, length,
              kMaxAvailabilitySeconds);
}

double checked_gap(double gap, const std::string& source) {
  if (gap > 0 && gap <= kMaxAvailabilitySeconds && rounded(gap) > 0) return rounded(gap);
  throw_error("{}: a sample every {} s; accepted: more than 0 s, up to {} s", source, gap,
              kMaxAvailabilitySeconds);
}

// `last` is the time of the change before, negative for the first.
void require_change(const AvailabilityChange& change, double last, double length,
                    const std::string& source) {
  const auto fail = [&](std::string_view wrong, const std::string& accepted) {
    throw_error("{}: {} devices at {} s: {}; accepted: {}", source, change.devices, change.seconds,
                wrong, accepted);
  };
  if (change.devices < 0 || change.devices > kMaxCores) {
    fail("the number is out of range", whole_range(0, kMaxCores));
  }
  if (last < 0 && change.seconds != 0) fail("the first change is not at 0", "0 s");
  if (!(change.seconds <= length)) fail("that is after the end", fmt::format("{} s", length));
  if (last >= 0 && !(change.seconds > last)) {
    fail("time does not increase", fmt::format("more than {} s", last));
  }
}

// The last of `changes` at or before that time, the first of which is at 0.
template <class Change>
const Change& last_change(const std::vector<Change>& changes, std::int64_t microseconds) {
  const auto after = std::upper_bound(changes.begin(), changes.end(), microseconds,
                                      [](std::int64_t time, const Change& change) {
                                        return time < microseconds_of(change.seconds);
                                      });
  return *std::prev(after);
}

std::vector<PriceChange> checked_prices(std::vector<PriceChange> prices, double length,
                                        const std::string& source) {
  double last = -1;
  for (PriceChange& change : prices) {
    if (!kNotNegative.holds(change.price) || (last < 0 && change.seconds != 0) ||
        !(change.seconds > last) || !(change.seconds <= length)) {
      throw_error(
          "{}: a price of {} at {} s; accepted: prices of at least 0, the first at 0 s, in the "
          "order of their time, up to {} s",
          source, change.price, change.seconds, length);
    }
    last = change.seconds = rounded(change.seconds);
  }
  return prices;
}

}  // namespace

Availability::Availability(std::vector<AvailabilityChange> changes, double length,
                           std::string source, TraceEnd end, std::optional<double> sample_gap,
                           std::vector<PriceChange> prices, AvailabilityOrigin origin)
    : changes_(std::move(changes)),
      length_(0),
      source_(std::move(source)),
      end_(end),
      sample_gap_(sample_gap),
      origin_(std::move(origin)) {
  require_length(length, source_);
  length_ = rounded(length);
  if (changes_.empty()) {
    throw_error("{}: the availability is empty; accepted: devices from 0 s on", source_);
  }
  if (sample_gap_) sample_gap_ = checked_gap(*sample_gap_, source_);
  // The filtering is done in place, because there may be millions of changes.
  std::size_t kept = 0;
  double last = -1;
  for (AvailabilityChange change : changes_) {
    require_change(change, last, length, source_);
    last = change.seconds;
    change.seconds = rounded(change.seconds);
    // The later of two changes in the same microsecond counts.
    if (kept > 0 && changes_[kept - 1].seconds == change.seconds) --kept;
    if (kept > 0 && changes_[kept - 1].devices == change.devices) continue;
    changes_[kept++] = change;
  }
  changes_.resize(kept);
  prices_ = checked_prices(std::move(prices), length_, source_);
}

std::optional<std::int64_t> Availability::within(double seconds) const {
  RUBATO_CHECK(seconds >= 0 && seconds <= kLatest, "a time within 95 years from 0 on");
  const std::int64_t time = microseconds_of(seconds);
  const std::int64_t length = microseconds_of(length_);
  if (time < length) return time;
  if (!endless()) return std::nullopt;
  return end_ == TraceEnd::cycle ? time % length : length;
}

std::optional<std::int64_t> Availability::at(double seconds) const {
  const std::optional<std::int64_t> time = within(seconds);
  if (!time) return std::nullopt;
  return last_change(changes_, *time).devices;
}

std::optional<double> Availability::price_at(double seconds) const {
  const std::optional<std::int64_t> time = within(seconds);
  if (!time || prices_.empty()) return std::nullopt;
  return last_change(prices_, *time).price;
}

std::optional<double> Availability::next_price(double seconds) const {
  const std::optional<std::int64_t> time = within(seconds);
  if (!time || prices_.empty()) return std::nullopt;
  const PriceChange* const next = &last_change(prices_, *time) + 1;
  const std::int64_t begin = microseconds_of(seconds) - *time;
  if (next != prices_.data() + prices_.size()) {
    return seconds_of(begin + microseconds_of(next->seconds));
  }
  if (end_ != TraceEnd::cycle) return std::nullopt;
  return seconds_of(begin + microseconds_of(length_));
}

std::optional<double> Availability::next_change(double seconds) const {
  const std::optional<std::int64_t> now = at(seconds);
  if (!now) return std::nullopt;
  const std::int64_t time = microseconds_of(seconds);
  const std::int64_t length = microseconds_of(length_);
  const std::int64_t round = end_ == TraceEnd::cycle ? time - time % length : 0;
  const std::int64_t within = std::min(time - round, length);
  const auto counts = [&](std::size_t i) { return i < changes_.size() && lasts(changes_[i]); };
  const auto next = static_cast<std::size_t>(&last_change(changes_, within) - changes_.data()) + 1;
  if (counts(next)) return seconds_of(round + microseconds_of(changes_[next].seconds));
  if (end_ == TraceEnd::hold) return std::nullopt;
  if (end_ != TraceEnd::cycle || changes_.front().devices != *now) {
    return seconds_of(round + length);
  }
  if (!counts(1)) return std::nullopt;
  return seconds_of(round + length + microseconds_of(changes_[1].seconds));
}

bool Availability::is_sampled() const {
  if (!sample_gap_) return false;
  const std::int64_t gap = microseconds_of(*sample_gap_);
  const std::int64_t length = microseconds_of(length_);
  const auto is_whole = [gap](const auto& change) {
    return microseconds_of(change.seconds) % gap == 0;
  };
  return length % gap == 0 && length / gap <= kMostSamples &&
         std::ranges::all_of(changes_, is_whole) && std::ranges::all_of(prices_, is_whole);
}

std::vector<std::int64_t> Availability::row_times() const {
  std::vector<std::int64_t> times;
  const std::int64_t length = microseconds_of(length_);
  if (is_sampled()) {
    const std::int64_t gap = microseconds_of(*sample_gap_);
    times.reserve(static_cast<std::size_t>(length / gap));
    for (std::int64_t time = 0; time < length; time += gap) times.push_back(time);
    if (changes_.back().seconds == length_) times.push_back(length);
    return times;
  }
  for (const AvailabilityChange& change : changes_)
    times.push_back(microseconds_of(change.seconds));
  for (const PriceChange& change : prices_) times.push_back(microseconds_of(change.seconds));
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

void Availability::write_csv(std::ostream& out) const {
  const bool priced = !prices_.empty();
  std::string text = priced ? "seconds,count,price\n" : "seconds,count\n";
  for (const std::int64_t time : row_times()) {
    constexpr std::size_t kPiece = 1 << 16;
    fmt::format_to(std::back_inserter(text), "{},{}", seconds_of(time),
                   last_change(changes_, time).devices);
    if (priced) fmt::format_to(std::back_inserter(text), ",{}", last_change(prices_, time).price);
    text += '\n';
    if (text.size() < kPiece) continue;
    out << text;
    text.clear();
  }
  out << text << fmt::format("{},{}\n", length_, priced ? "," : "");
}

namespace {

std::optional<PriceSummary> summary_of_prices(const Availability& availability) {
  const std::vector<PriceChange>& prices = availability.prices();
  if (prices.empty()) return std::nullopt;
  const AvailabilityOrigin& origin = availability.origin();
  const double end = availability.length() - origin.rest;
  double sum = 0;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const double until = i + 1 == prices.size() ? end : std::min(end, prices[i + 1].seconds);
    const double stretch = until - std::max(origin.delay, prices[i].seconds);
    if (stretch > 0) sum += stretch * prices[i].price;
  }
  const auto [lowest, highest] = std::ranges::minmax(prices, {}, &PriceChange::price);
  return PriceSummary{.lowest = lowest.price,
                      .highest = highest.price,
                      .mean = sum / (end - origin.delay),
                      .changes = std::ssize(prices) - 1,
                      .hours_without = (origin.delay + origin.rest) / kSecondsOfHour};
}

}  // namespace

AvailabilitySummary summary_of(const Availability& availability) {
  const std::vector<AvailabilityChange>& changes = availability.changes();
  AvailabilitySummary summary{.fewest = changes.front().devices, .most = changes.front().devices};
  double device_seconds = 0;
  double at_zero = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const bool last = i + 1 == changes.size();
    const double until = last ? availability.length() : changes[i + 1].seconds;
    const double stretch = until - changes[i].seconds;
    // A change at the end has no duration.
    if (stretch == 0) continue;
    if (i > 0) ++summary.changes;
    summary.fewest = std::min(summary.fewest, changes[i].devices);
    summary.most = std::max(summary.most, changes[i].devices);
    device_seconds += stretch * static_cast<double>(changes[i].devices);
    if (changes[i].devices > 0) continue;
    at_zero += stretch;
    summary.longest_at_zero = std::max(summary.longest_at_zero, stretch);
  }
  summary.mean = device_seconds / availability.length();
  summary.changes_per_hour =
      static_cast<double>(summary.changes) * kSecondsOfHour / availability.length();
  summary.share_at_zero = at_zero / availability.length();
  summary.prices = summary_of_prices(availability);
  return summary;
}

namespace {

// The availability `delay` seconds later, and without devices before and after it, up to `length`.
Availability delayed(const Availability& of, double delay, double length) {
  std::vector<AvailabilityChange> changes;
  if (delay > 0) changes.push_back({.seconds = 0, .devices = 0});
  for (const AvailabilityChange& change : of.changes()) {
    changes.push_back({.seconds = delay + change.seconds, .devices = change.devices});
  }
  const double end = rounded(delay + of.length());
  if (rounded(length) > end) {
    if (rounded(changes.back().seconds) == end) changes.pop_back();
    changes.push_back({.seconds = end, .devices = 0});
  }
  std::vector<PriceChange> prices = of.prices();
  for (PriceChange& change : prices) {
    if (change.seconds > 0) change.seconds += delay;
  }
  AvailabilityOrigin origin = of.origin();
  origin.start = *origin.start - delay;
  origin.delay += delay;
  origin.rest += rounded(length) - end;
  return {std::move(changes), length,           of.source(), of.end(), of.sample_gap(),
          std::move(prices),  std::move(origin)};
}

// Puts zones with times of one clock on it, if that shows: where none begins later, and their times
// are not absolute, nothing tells that they do not begin together.
void put_on_clock(const std::vector<Zone*>& zones) {
  if (zones.empty()) return;
  const auto start_of = [](const Zone* zone) { return *zone->availability.origin().start; };
  const auto [least, most] = std::ranges::minmax(zones, {}, start_of);
  const double start = start_of(least);
  if (start == start_of(most) && !has_absolute_times(least->availability)) return;
  const auto delay_of = [&](const Zone* zone) { return start_of(zone) - start; };
  double latest = 0;
  for (const Zone* const zone : zones) {
    latest = std::max(latest, delay_of(zone) + zone->availability.length());
  }
  for (Zone* const zone : zones) {
    const Availability& of = zone->availability;
    const double length = of.end() == TraceEnd::cycle ? latest : delay_of(zone) + of.length();
    zone->availability = delayed(of, delay_of(zone), length);
  }
}

}  // namespace

bool has_absolute_times(const Availability& availability) {
  return availability.origin().start.value_or(0) > kMaxAvailabilitySeconds;
}

Zones::Zones(Availability availability)
    : zones_{{.availability = std::move(availability)}},
      source_(zones_.front().availability.source()) {}

Zones::Zones(std::vector<Zone> zones, std::string source)
    : zones_(std::move(zones)), source_(std::move(source)) {
  if (zones_.empty()) throw_error("{}: there are no zones; accepted: one at least", source_);
  std::set<std::string_view> names;
  for (const auto& [name, availability] : zones_) {
    if (name.empty() || name.find_first_of(",=:/") != std::string::npos) {
      throw_error("{}: '{}' is not the name of a zone; accepted: one without any of ',=:/'",
                  source_, name);
    }
    if (!names.insert(name).second) {
      throw_error("{}: two zones are called {}; accepted: a name for each", source_, name);
    }
    if (availability.end() != end()) {
      throw_error("{}: what follows the end of {} differs from that of {}; accepted: the same",
                  source_, name, zones_.front().name);
    }
  }
  std::vector<Zone*> absolute;
  std::vector<Zone*> relative;
  for (Zone& zone : zones_) {
    if (!zone.availability.origin().start) continue;
    (has_absolute_times(zone.availability) ? absolute : relative).push_back(&zone);
  }
  put_on_clock(absolute);
  put_on_clock(relative);
}

const Availability& Zones::only() const {
  if (!several()) return zones_.front().availability;
  throw_error("{}: there are {} zones; accepted: the devices of one (docs/traces.md)", source_,
              zones_.size());
}

double Zones::length() const {
  double longest = 0;
  for (const Zone& zone : zones_) longest = std::max(longest, zone.availability.length());
  return longest;
}

}  // namespace rubato
