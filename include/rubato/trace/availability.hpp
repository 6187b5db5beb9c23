#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <rubato/core/choice.hpp>
#include <rubato/trace/trace.hpp>

namespace rubato {

/// The longest availability there is, in seconds: ten years of 365.25 days. Beyond it lies a unit
/// that was mistaken for another, such as milliseconds since 1970.
inline constexpr double kMaxAvailabilitySeconds = 315'576'000;

/// From a time on there are so many devices.
struct AvailabilityChange {
  /// From 0 on, in whole microseconds.
  double seconds = 0;
  /// 0 to kMaxCores.
  std::int64_t devices = 0;

  friend bool operator==(const AvailabilityChange&, const AvailabilityChange&) = default;
};

/// How many devices there are at which time: what a cloud gave, or what a generator makes of it.
///
/// Times are kept in whole microseconds, so that what is compared with them is exact: they are
/// rounded to the nearest one where they come in.
class Availability {
 public:
  /// The number of devices changes at the times of `changes`, the first of which is 0, and is known
  /// until `length` seconds. Changes to what there is already are left out. The last change may be
  /// at `length`: it holds for no time, unless the last number is held (TraceEnd::hold).
  ///
  /// `source` names it in messages ("a100.csv", "saw:cycles=3"). `sample_gap` is the time between
  /// two measurements, in seconds, where it was measured in regular intervals. Throws Error, naming
  /// the change, when there are none, when times do not ascend, for a length that is not above 0 or
  /// above kMaxAvailabilitySeconds, and for a number of devices out of its range.
  Availability(std::vector<AvailabilityChange> changes, double length, std::string source,
               TraceEnd end = TraceEnd::error, std::optional<double> sample_gap = {});

  /// How many devices there are at `seconds`, continued beyond length() as end() says; empty when
  /// nothing follows. Requires 0 <= seconds <= 3e9 (95 years).
  [[nodiscard]] std::optional<std::int64_t> at(double seconds) const;
  /// The next time after `seconds` at which at() gives something else than at `seconds`; empty when
  /// there is none. Where nothing follows the end, the end is such a time.
  [[nodiscard]] std::optional<double> next_change(double seconds) const;

  /// Each is another number of devices than the one before.
  [[nodiscard]] const std::vector<AvailabilityChange>& changes() const { return changes_; }
  /// Whether there are ever as many as one of its changes says: not where it is at length(), unless
  /// the last number is held.
  [[nodiscard]] bool lasts(const AvailabilityChange& change) const {
    return change.seconds < length_ || end_ == TraceEnd::hold;
  }
  /// In seconds, greater than 0, without what follows.
  [[nodiscard]] double length() const { return length_; }
  [[nodiscard]] std::optional<double> sample_gap() const { return sample_gap_; }
  [[nodiscard]] TraceEnd end() const { return end_; }
  /// Whether at() answers for every time, however late.
  [[nodiscard]] bool endless() const { return end_ == TraceEnd::hold || end_ == TraceEnd::cycle; }
  [[nodiscard]] const std::string& source() const { return source_; }

  /// Writes it as the CSV `seconds,count` that read_availability() reads to the same changes and
  /// length: a row for each sample where there is a sampling gap, otherwise for each change, and a
  /// last row without a count for the end.
  void write_csv(std::ostream& out) const;

 private:
  // The last change at or before that time, in microseconds from 0 to length_.
  [[nodiscard]] std::size_t change_at(std::int64_t microseconds) const;
  // Whether a row for each sample says it all.
  [[nodiscard]] bool is_sampled() const;

  std::vector<AvailabilityChange> changes_;
  double length_;
  std::string source_;
  TraceEnd end_;
  std::optional<double> sample_gap_;
};

/// In which form a file has an availability.
enum class AvailabilityFormat {
  samples,      ///< CSV with a header that has a column of times in seconds and one of counts
  events,       ///< CSV without header: milliseconds,add|remove,node
  event_lines,  ///< a line of JSON for each event: [milliseconds, "add|remove|...", {"nodes": []}]
  counts,       ///< JSON: {"metadata": {"gap_seconds": 60}, "data": [counts]}
};
inline constexpr std::array<Choice<AvailabilityFormat>, 4> kAvailabilityFormats{
    {{AvailabilityFormat::samples, "samples"},
     {AvailabilityFormat::events, "events"},
     {AvailabilityFormat::event_lines, "event-lines"},
     {AvailabilityFormat::counts, "counts"}}};

/// Reads a file (or pipe) in one pass. Which of the formats it has is seen from its beginning,
/// unless `format` says so. Times count from the first sample, and from 0 where the file has
/// events; docs/traces.md describes each format with what is accepted in it. Memory grows with the
/// changes, and with the file only for AvailabilityFormat::counts, which is one JSON value. Throws
/// Error with file, line and what would be accepted.
[[nodiscard]] Availability read_availability(const std::filesystem::path& path,
                                             std::optional<AvailabilityFormat> format = {},
                                             TraceEnd end = TraceEnd::error);
/// The same for text at hand; `source` stands for the file's name in messages.
[[nodiscard]] Availability parse_availability(std::string_view text, std::string source,
                                              std::optional<AvailabilityFormat> format = {},
                                              TraceEnd end = TraceEnd::error);

/// Reads a file (or pipe) with either a trace (Trace::read_csv()) or an availability: the header of
/// a trace begins with `step`.
[[nodiscard]] std::variant<Trace, Availability> read_trace_or_availability(
    const std::filesystem::path& path, TraceEnd end = TraceEnd::error);

/// An availability in a few numbers.
struct AvailabilitySummary {
  /// Devices.
  std::int64_t fewest = 0;
  std::int64_t most = 0;
  /// Devices, weighted by time.
  double mean = 0;
  /// How often the number of devices changes.
  std::int64_t changes = 0;
  double changes_per_hour = 0;
  /// The share of time without any device, 0 to 1, and the longest stretch of it in seconds.
  double share_at_zero = 0;
  double longest_at_zero = 0;
};
/// Of the length() that is known, without what follows it.
[[nodiscard]] AvailabilitySummary summary_of(const Availability& availability);

}  // namespace rubato
