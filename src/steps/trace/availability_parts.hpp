#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/steps/availability.hpp>

#include "base/core/text/text_reader.hpp"

namespace rubato::detail {

/// Seconds in whole microseconds, in which an availability is exact; up to 4e9 seconds.
[[nodiscard]] inline std::int64_t microseconds_of(double seconds) {
  return std::llround(seconds * 1e6);
}
/// The nearest double; microseconds_of() converts it back to the same microseconds.
[[nodiscard]] inline double seconds_of(std::int64_t microseconds) {
  return static_cast<double>(microseconds) / 1e6;
}

/// The parts of an availability except its name and what follows its end; read by an importer or
/// made by a generator.
struct AvailabilityParts {
  std::vector<AvailabilityChange> changes{};
  /// The length in seconds.
  double length = 0;
  std::optional<double> sample_gap{};
  std::vector<PriceChange> prices{};
  AvailabilityOrigin origin{};
};

// The importers, one for each format. Both read in one pass, and throw Error with the line.
[[nodiscard]] AvailabilityParts import_samples(TextReader& reader, const DeviceColumns& columns);
[[nodiscard]] AvailabilityParts import_events(TextReader& reader);
/// The columns of samples by their names: each of its own, not their sum.
[[nodiscard]] std::vector<std::pair<std::string, AvailabilityParts>> import_zones(
    TextReader& reader, const DeviceColumns& columns);

/// The format that a file's beginning indicates; empty if it is neither.
[[nodiscard]] std::optional<AvailabilityFormat> format_of(std::string_view beginning);
/// read_availability() for a file that is open.
[[nodiscard]] Availability read_availability(TextReader& reader,
                                             std::optional<AvailabilityFormat> format,
                                             const DeviceColumns& columns,
                                             TraceEnd end = TraceEnd::error);

/// True if a column of that name has times.
[[nodiscard]] bool is_time(std::string_view name);

/// The beginnings of both formats, for messages about a file that has neither.
inline constexpr std::string_view kFormatsAccepted =
    "the header 'seconds,count' or such as ',Time,GPUs', or events such as '0,add,node1' "
    "(docs/traces.md has a script for JSON)";
/// The beginning of a trace of steps, for the same messages.
inline constexpr std::string_view kStepsAccepted =
    "the header 'step,batchsize' or 'step,batchsize,cores'";
/// A line of events.
inline constexpr std::string_view kEvent = "milliseconds,add|remove,node";

/// Collects the changes of an availability in ascending order of time.
class ChangeList {
 public:
  /// Adds a change to `devices` devices at `microseconds`; the later of two at one time counts.
  void add(std::int64_t microseconds, std::int64_t devices);
  [[nodiscard]] std::vector<AvailabilityChange> take() { return std::move(changes_); }

 private:
  std::vector<AvailabilityChange> changes_;
};

}  // namespace rubato::detail
