// Events are read in one pass: NodeEvents keeps the nodes that exist, and notes their number after
// each event. Impossible events, such as a node that is added twice, are errors, because the number
// of devices would be wrong from there on.

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "availability_parts.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/throw_error.hpp"

namespace rubato::detail {

void ChangeList::add(std::int64_t microseconds, std::int64_t devices) {
  const double seconds = seconds_of(microseconds);
  if (!changes_.empty() && changes_.back().seconds == seconds) changes_.pop_back();
  if (!changes_.empty() && changes_.back().devices == devices) return;
  changes_.push_back({.seconds = seconds, .devices = devices});
}

namespace {

// The latest time of an event, in milliseconds.
constexpr auto kMaxMilliseconds = static_cast<std::int64_t>(kMaxAvailabilitySeconds) * 1000;
constexpr std::size_t kLongestName = 200;

// Tracks the existing nodes through the events of a file. Its functions handle the event in the
// reader's line; each throws Error if it is impossible.
class NodeEvents {
 public:
  explicit NodeEvents(const TextReader& reader) : reader_(reader) { changes_.add(0, 0); }

  // Sets the time of the event, in milliseconds; to be called first.
  void at(std::int64_t milliseconds) {
    if (milliseconds > kMaxMilliseconds) {
      reader_.fail(fmt::format("an event at {} ms", milliseconds),
                   fmt::format("milliseconds from the start of the trace on, up to {} (ten years)",
                               kMaxMilliseconds));
    }
    if (milliseconds < milliseconds_) {
      reader_.fail(
          fmt::format("time goes backwards, from {} to {} ms", milliseconds_, milliseconds),
          "events in the order of their time");
    }
    milliseconds_ = milliseconds;
  }

  void add(std::string_view node) {
    if (node.empty() || node.size() > kLongestName) {
      reader_.fail(fmt::format("a name of {} characters", node.size()),
                   fmt::format("the name of a node, of 1 to {}", kLongestName));
    }
    if (nodes_.contains(node)) {
      reader_.fail(fmt::format("{} is added, but is there already", excerpt(node)),
                   "a node that is not there");
    }
    if (static_cast<std::int64_t>(nodes_.size()) == kMaxCores) {
      reader_.fail("there are too many nodes", fmt::format("up to {} at a time", kMaxCores));
    }
    nodes_.emplace(node);
    note();
  }

  void remove(std::string_view node) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) {
      reader_.fail(fmt::format("{} is removed, but is not there", excerpt(node)),
                   "a node that was added and not removed");
    }
    nodes_.erase(found);
    note();
  }

  // The availability up to the last event.
  AvailabilityParts take() {
    if (milliseconds_ == 0) {
      throw_error(
          "{}: all events are at 0 ms, so it has no duration; accepted: a later event, where it "
          "ends",
          reader_.source());
    }
    return {.changes = changes_.take(),
            .length = seconds_of(milliseconds_ * 1000),
            .origin = {.start = 0}};
  }

 private:
  // A transparent hash, so that nodes are looked up without a copy of their name.
  struct Hash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  void note() { changes_.add(milliseconds_ * 1000, static_cast<std::int64_t>(nodes_.size())); }

  const TextReader& reader_;
  ChangeList changes_;
  std::unordered_set<std::string, Hash, std::equal_to<>> nodes_;
  std::int64_t milliseconds_ = 0;
};

void read_event(const TextReader& reader, const CsvFields& cells, NodeEvents& events) {
  const auto& fields = cells.fields;
  if (!cells.flaw.empty() || fields.size() != 3) {
    reader.fail(fmt::format("{} is not an event", excerpt(reader.line())), kEvent);
  }
  const auto milliseconds = whole_number(fields[0]);
  if (!milliseconds || *milliseconds < 0) {
    reader.fail(fmt::format("the time {} {}", excerpt(fields[0]), flaw_of(fields[0])),
                "a whole number of milliseconds, from 0 on");
  }
  events.at(*milliseconds);
  if (is_name(fields[1], "add")) {
    events.add(fields[2]);
  } else if (is_name(fields[1], "remove")) {
    events.remove(fields[2]);
  } else {
    reader.fail(fmt::format("unknown event {}", excerpt(fields[1])), "add, remove");
  }
}

void read_events(TextReader& reader, NodeEvents& events) {
  CsvFields cells;
  bool ended = false;
  bool any = false;
  while (reader.next_line()) {
    split_csv(reader.line(), ',', cells);
    cells.drop_empty_beyond(3);
    // Blank lines are accepted at the end only.
    if (cells.empty()) {
      ended = true;
      continue;
    }
    if (ended) reader.fail("there is a blank line before this event", kEvent);
    read_event(reader, cells, events);
    any = true;
  }
  if (!any) throw_error("{}: the file is empty; accepted: {}", reader.source(), kEvent);
}

}  // namespace

AvailabilityParts import_events(TextReader& reader) {
  NodeEvents events(reader);
  read_events(reader, events);
  return events.take();
}

}  // namespace rubato::detail
