#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <rubato/base/spec.hpp>
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
};

/// Generates an availability from arguments that have been read.
using Generation = std::function<AvailabilityParts()>;

// The readers of the generators' arguments, one for each generator.
[[nodiscard]] Generation read_constant(Spec& spec);
[[nodiscard]] Generation read_steps(Spec& spec);
[[nodiscard]] Generation read_saw(Spec& spec);
[[nodiscard]] Generation read_walk(Spec& spec);
[[nodiscard]] Generation read_spot(Spec& spec);
[[nodiscard]] Generation read_daily(Spec& spec);

// Arguments that several generators have in common.

/// The length, in seconds.
[[nodiscard]] double read_hours(Spec& spec);
/// Seconds between two samples; throws Error if `length` would have more than ten million of them.
[[nodiscard]] std::int64_t read_every(Spec& spec, std::int64_t fallback, double length);
[[nodiscard]] std::int64_t read_seed(Spec& spec);

/// A stream of random numbers that depends on the seed and the stream only.
class Draws {
 public:
  Draws(std::int64_t seed, std::int64_t stream) : seed_(seed), stream_(stream) {}

  /// A number from 0 to below 1.
  [[nodiscard]] double share();
  /// A whole number from `low` to `high`, which are at most 2^32 apart.
  [[nodiscard]] std::int64_t whole(std::int64_t low, std::int64_t high);

 private:
  std::int64_t seed_;
  std::int64_t stream_;
  std::int64_t drawn_ = 0;
};

/// The largest number of changes; more are most likely a typing error.
inline constexpr std::int64_t kMostChanges = 10'000'000;

// The importers, one for each format. Both read in one pass, and throw Error with the line.
[[nodiscard]] AvailabilityParts import_samples(TextReader& reader, const DeviceColumns& columns);
[[nodiscard]] AvailabilityParts import_events(TextReader& reader);

/// True if a column of that name has times.
[[nodiscard]] bool is_time(std::string_view name);

/// The beginnings of both formats, for messages about a file that has neither.
inline constexpr std::string_view kFormatsAccepted =
    "the header 'seconds,count' or such as ',Time,GPUs', or events such as '0,add,node1' "
    "(docs/traces.md has a script for JSON)";

/// Collects the changes of an availability in ascending order of time.
class ChangeList {
 public:
  /// Adds a change to `devices` devices at `microseconds`; the later of two at one time counts.
  void add(std::int64_t microseconds, std::int64_t devices);
  [[nodiscard]] std::vector<AvailabilityChange> take() { return std::move(changes_); }

 private:
  std::vector<AvailabilityChange> changes_;
};

/// The columns of a table that hold the time and the devices.
struct SampleColumns {
  std::size_t time = 0;
  /// One column, or several whose sum counts.
  std::vector<std::size_t> counts{};
};

/// Throws an error about the row that was read last.
using FailAtRow = std::function<void(std::string_view wrong, std::string_view accepted)>;

/// The columns among `names`; empty unless there is one column of times and at least one other.
/// Throws by `fail` if several columns may count devices and `wanted` does not choose.
[[nodiscard]] std::optional<SampleColumns> find_columns(const std::vector<std::string_view>& names,
                                                        const DeviceColumns& wanted,
                                                        const FailAtRow& fail);

/// Collects rows of times and counts in order.
class SampleRows {
 public:
  explicit SampleRows(FailAtRow fail) : fail_(std::move(fail)) {}

  /// Adds a row; one without a count must be the last and says where the availability ends.
  void take(double seconds, std::optional<std::int64_t> count);
  /// The availability of all rows. If no row gives its end, the last row lasts as long as the one
  /// before it. `source` names the file in messages.
  [[nodiscard]] AvailabilityParts all(const std::string& source);

 private:
  void check_order(std::int64_t time, bool is_end);

  FailAtRow fail_;
  ChangeList changes_;
  double first_ = 0;
  // Time of the last row, in microseconds since the first.
  std::int64_t last_ = 0;
  // Microseconds between the last two rows.
  std::int64_t gap_ = 0;
  std::int64_t rows_ = 0;
  bool regular_ = true;
  bool ended_ = false;
};

/// Tracks the existing nodes through the events of a file.
class NodeEvents {
 public:
  explicit NodeEvents(const TextReader& reader) : reader_(reader) { changes_.add(0, 0); }

  // The following functions handle the event in the reader's line; each throws Error if it is
  // impossible.

  /// Sets the time of the event, in milliseconds; to be called first.
  void at(std::int64_t milliseconds);
  void add(std::string_view node);
  void remove(std::string_view node);

  /// The availability up to the last event.
  [[nodiscard]] AvailabilityParts take();

 private:
  // A transparent hash, so that nodes are looked up without a copy of their name.
  struct Hash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  void note();

  const TextReader& reader_;
  ChangeList changes_;
  std::unordered_set<std::string, Hash, std::equal_to<>> nodes_;
  std::int64_t milliseconds_ = 0;
};

/// The latest time of an event, in milliseconds.
inline constexpr auto kMaxMilliseconds = static_cast<std::int64_t>(kMaxAvailabilitySeconds) * 1000;

}  // namespace rubato::detail
