#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <rubato/steps/availability.hpp>

#include "base/core/tables/text_reader.hpp"
#include "steps/trace/availability_parts.hpp"

namespace rubato::detail {

// One for each format; all read in one pass, and throw Error with the line, or in JSON the entry.
[[nodiscard]] AvailabilityParts import_samples(TextReader& reader, const DeviceColumns& columns);
[[nodiscard]] AvailabilityParts import_records(TextReader& reader, const DeviceColumns& columns);
[[nodiscard]] AvailabilityParts import_events(TextReader& reader);
[[nodiscard]] AvailabilityParts import_event_lines(TextReader& reader);
[[nodiscard]] AvailabilityParts import_counts(TextReader& reader);

/// Whether a column of that name has times.
[[nodiscard]] bool is_time(std::string_view name);

/// What all formats begin with, for messages about a file that has none of them.
inline constexpr std::string_view kFormatsAccepted =
    "the header 'seconds,count' or such as ',Time,GPUs', records such as '[{\"Time\": 0, \"GPUs\": "
    "4}, ...]', events such as '0,add,node1' or '[0, \"add\", {\"nodes\": [...]}]', or "
    "'{\"metadata\": {\"gap_seconds\": ...}, \"data\": [...]}'";

/// The changes of an availability as they come, in ascending order of time.
class ChangeList {
 public:
  /// From `microseconds` on there are so many devices; of two at one time the later one counts.
  void add(std::int64_t microseconds, std::int64_t devices);
  [[nodiscard]] std::vector<AvailabilityChange> take() { return std::move(changes_); }

 private:
  std::vector<AvailabilityChange> changes_;
};

/// The time and the devices of a row are in these columns.
struct SampleColumns {
  std::size_t time = 0;
  /// One, or several of which the sum counts.
  std::vector<std::size_t> counts{};
};

/// Throws an error about the row, or record, that was read last.
using FailAtRow = std::function<void(std::string_view wrong, std::string_view accepted)>;

/// Nothing where the names are not those of one column of times and of others with devices. Throws
/// by `fail` where there are several of these, and `wanted` does not say which.
[[nodiscard]] std::optional<SampleColumns> find_columns(const std::vector<std::string_view>& names,
                                                        const DeviceColumns& wanted,
                                                        const FailAtRow& fail);

/// Takes rows of times and counts in their order.
class SampleRows {
 public:
  explicit SampleRows(FailAtRow fail) : fail_(std::move(fail)) {}

  /// A row without a count, which is the last, says where the availability ends.
  void take(double seconds, std::optional<std::int64_t> count);
  /// All of them; where no row says how long the last one lasts, it is as long as the one before
  /// it. `source` stands for the file in messages.
  [[nodiscard]] AvailabilityParts all(const std::string& source);

 private:
  void check_order(std::int64_t time, bool is_end);

  FailAtRow fail_;
  ChangeList changes_;
  double first_ = 0;
  // In microseconds since the first.
  std::int64_t last_ = 0;
  // Between the last two rows.
  std::int64_t gap_ = 0;
  std::int64_t rows_ = 0;
  bool regular_ = true;
  bool ended_ = false;
};

/// Follows which nodes there are through the events of a file.
class NodeEvents {
 public:
  explicit NodeEvents(const TextReader& reader) : reader_(reader) { changes_.add(0, 0); }

  // The event of the reader's line; each throws Error where it cannot be.

  /// To be called first: when it is, in milliseconds.
  void at(std::int64_t milliseconds);
  void add(std::string_view node);
  void remove(std::string_view node);

  /// What the events come to, when the last one lasts for `milliseconds`.
  [[nodiscard]] AvailabilityParts take(std::int64_t milliseconds);

 private:
  // So that nodes are looked up without a copy of their name.
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

/// The largest number of milliseconds that an event may have.
inline constexpr auto kMaxMilliseconds = static_cast<std::int64_t>(kMaxAvailabilitySeconds) * 1000;

}  // namespace rubato::detail
