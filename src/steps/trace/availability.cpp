#include <algorithm>
#include <iterator>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>
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

}  // namespace

Availability::Availability(std::vector<AvailabilityChange> changes, double length,
                           std::string source, TraceEnd end, std::optional<double> sample_gap)
    : changes_(std::move(changes)),
      length_(0),
      source_(std::move(source)),
      end_(end),
      sample_gap_(sample_gap) {
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
}

std::size_t Availability::change_at(std::int64_t microseconds) const {
  const auto after = std::upper_bound(changes_.begin(), changes_.end(), microseconds,
                                      [](std::int64_t time, const AvailabilityChange& change) {
                                        return time < microseconds_of(change.seconds);
                                      });
  return static_cast<std::size_t>(after - changes_.begin()) - 1;
}

std::optional<std::int64_t> Availability::at(double seconds) const {
  RUBATO_CHECK(seconds >= 0 && seconds <= kLatest, "a time within 95 years from 0 on");
  std::int64_t time = microseconds_of(seconds);
  const std::int64_t length = microseconds_of(length_);
  if (time >= length) {
    if (!endless()) return std::nullopt;
    time = end_ == TraceEnd::cycle ? time % length : length;
  }
  return changes_[change_at(time)].devices;
}

std::optional<double> Availability::next_change(double seconds) const {
  const std::optional<std::int64_t> now = at(seconds);
  if (!now) return std::nullopt;
  const std::int64_t time = microseconds_of(seconds);
  const std::int64_t length = microseconds_of(length_);
  const std::int64_t round = end_ == TraceEnd::cycle ? time - time % length : 0;
  const std::int64_t within = std::min(time - round, length);
  const auto counts = [&](std::size_t i) { return i < changes_.size() && lasts(changes_[i]); };
  const std::size_t next = change_at(within) + 1;
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
  return length % gap == 0 && length / gap <= kMostSamples &&
         std::all_of(changes_.begin(), changes_.end(), [&](const AvailabilityChange& change) {
           return microseconds_of(change.seconds) % gap == 0;
         });
}

void Availability::write_csv(std::ostream& out) const {
  std::string text = "seconds,count\n";
  const auto put = [&](double seconds, std::int64_t devices) {
    constexpr std::size_t kPiece = 1 << 16;
    fmt::format_to(std::back_inserter(text), "{},{}\n", seconds, devices);
    if (text.size() < kPiece) return;
    out << text;
    text.clear();
  };
  if (is_sampled()) {
    const std::int64_t gap = microseconds_of(*sample_gap_);
    const std::int64_t length = microseconds_of(length_);
    std::size_t change = 0;
    for (std::int64_t time = 0; time < length; time += gap) {
      if (change + 1 < changes_.size() && microseconds_of(changes_[change + 1].seconds) == time) {
        ++change;
      }
      put(seconds_of(time), changes_[change].devices);
    }
    if (change + 1 < changes_.size()) put(length_, changes_.back().devices);
  } else {
    for (const AvailabilityChange& change : changes_) put(change.seconds, change.devices);
  }
  out << text << fmt::format("{},\n", length_);
}

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
  return summary;
}

}  // namespace rubato
