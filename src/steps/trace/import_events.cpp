#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>

#include "availability_parts.hpp"
#include "base/core/text/csv.hpp"

namespace rubato::detail {

namespace {

constexpr std::size_t kLongestName = 200;

}  // namespace

void ChangeList::add(std::int64_t microseconds, std::int64_t devices) {
  const double seconds = seconds_of(microseconds);
  if (!changes_.empty() && changes_.back().seconds == seconds) changes_.pop_back();
  if (!changes_.empty() && changes_.back().devices == devices) return;
  changes_.push_back({.seconds = seconds, .devices = devices});
}

void NodeEvents::at(std::int64_t milliseconds) {
  if (milliseconds > kMaxMilliseconds) {
    reader_.fail(fmt::format("an event at {} ms", milliseconds),
                 fmt::format("milliseconds from the start of the trace on, up to {} (ten years)",
                             kMaxMilliseconds));
  }
  if (milliseconds < milliseconds_) {
    reader_.fail(fmt::format("time goes backwards, from {} to {} ms", milliseconds_, milliseconds),
                 "events in the order of their time");
  }
  milliseconds_ = milliseconds;
}

void NodeEvents::add(std::string_view node) {
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

void NodeEvents::remove(std::string_view node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) {
    reader_.fail(fmt::format("{} is removed, but is not there", excerpt(node)),
                 "a node that was added and not removed");
  }
  nodes_.erase(found);
  note();
}

void NodeEvents::note() {
  changes_.add(milliseconds_ * 1000, static_cast<std::int64_t>(nodes_.size()));
}

AvailabilityParts NodeEvents::take(std::int64_t milliseconds) {
  const std::int64_t length = milliseconds_ + milliseconds;
  if (length == 0) {
    throw Error(
        fmt::format("{}: all events are at 0 ms, so it has no duration; accepted: a "
                    "later event, where it ends",
                    reader_.source()));
  }
  return {.changes = changes_.take(), .length = seconds_of(length * 1000)};
}

namespace {

constexpr std::string_view kEvent = "milliseconds,add|remove,node";

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

}  // namespace

AvailabilityParts import_events(TextReader& reader) {
  NodeEvents events(reader);
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
  if (!any) {
    throw Error(fmt::format("{}: the file is empty; accepted: {}", reader.source(), kEvent));
  }
  return events.take(0);
}

namespace {

constexpr std::string_view kEventLine =
    "[milliseconds, \"add|remove|no-op\", {\"nodes\": [names]}]";

// Takes the relevant values of a line of JSON while the parser runs, without building a tree: there
// may be millions of lines.
class EventLine {
 public:
  using Json = nlohmann::json;

  // Negative if they are missing.
  double milliseconds = -1;
  double duration = -1;
  std::string kind;
  bool has_nodes = false;
  std::vector<std::string> nodes;
  // The error; empty if there is none.
  std::string flaw;
  // True if the line is an array of three elements.
  [[nodiscard]] bool is_event() const { return elements_ == 3 && is_array_; }

  // The parser calls the following functions; false stops it.
  bool null() { return value(); }
  bool boolean(bool /*flag*/) { return value(); }
  bool binary(Json::binary_t& /*bytes*/) { return value(); }
  bool number_integer(Json::number_integer_t whole) { return number(static_cast<double>(whole)); }
  bool number_unsigned(Json::number_unsigned_t whole) { return number(static_cast<double>(whole)); }
  bool number_float(Json::number_float_t real, const Json::string_t& /*text*/) {
    return number(real);
  }
  bool string(Json::string_t& text) {
    if (in_nodes_) {
      nodes.push_back(std::move(text));
      return true;
    }
    if (depth_ == 1 && elements_ == 1) kind = std::move(text);
    return value();
  }
  bool start_object(std::size_t /*size*/) { return open(/*array=*/false); }
  bool start_array(std::size_t /*size*/) { return open(/*array=*/true); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(Json::string_t& name) {
    if (depth_ == 2) key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& /*error*/) {
    flaw = fmt::format("invalid JSON from column {} on", position);
    return false;
  }

 private:
  // True if the next value belongs to that key in the third element.
  [[nodiscard]] bool is(std::string_view key) const {
    return depth_ == 2 && elements_ == 3 && key_ == key;
  }
  bool value() {
    if (depth_ == 1) ++elements_;
    if (in_nodes_ || is("nodes")) flaw = "'nodes' is not a list of names";
    return flaw.empty();
  }
  bool number(double number) {
    if (depth_ == 1 && elements_ == 0) milliseconds = number;
    if (is("duration")) duration = number;
    return value();
  }
  bool open(bool array) {
    const bool nodes_begin = array && !in_nodes_ && is("nodes");
    if (depth_ == 0) is_array_ = array;
    if (!nodes_begin && !value()) return false;
    ++depth_;
    in_nodes_ = nodes_begin;
    has_nodes = has_nodes || nodes_begin;
    return true;
  }
  bool close() {
    --depth_;
    in_nodes_ = false;
    return true;
  }

  int depth_ = 0;
  // Elements of the line's array that have begun.
  int elements_ = 0;
  bool is_array_ = false;
  // True while the list of nodes is the innermost open value.
  bool in_nodes_ = false;
  // The last key of the open element.
  std::string key_;
};

// The value if it is a whole number of milliseconds; empty otherwise.
std::optional<std::int64_t> whole_milliseconds(double value) {
  if (!(value >= 0 && value <= 0x1p53) || value != std::floor(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

void apply(const TextReader& reader, const EventLine& event, NodeEvents& events) {
  const auto milliseconds = whole_milliseconds(event.milliseconds);
  if (!milliseconds) {
    reader.fail(fmt::format("the time in {} is invalid", excerpt(reader.line())),
                "a whole number of milliseconds, from 0 on");
  }
  events.at(*milliseconds);
  const bool adds = event.kind == "add";
  const bool removes = event.kind == "remove";
  // Parcae writes "migration" when nodes move, but none is added or removed.
  if (!adds && !removes && event.kind != "no-op" && event.kind != "migration") {
    reader.fail(fmt::format("unknown event {}", excerpt(event.kind)),
                "add, remove, no-op, migration");
  }
  if ((adds || removes) && !event.has_nodes) {
    reader.fail(fmt::format("{} without nodes", event.kind), kEventLine);
  }
  if (!adds && !removes && !event.nodes.empty()) {
    reader.fail(fmt::format("{} with nodes, which neither come nor go", event.kind),
                "an empty list of nodes");
  }
  for (const std::string& node : event.nodes) adds ? events.add(node) : events.remove(node);
}

std::int64_t duration_of(const TextReader& reader, const EventLine& event) {
  if (event.duration < 0) return 0;
  const auto duration = whole_milliseconds(event.duration);
  if (!duration || *duration > kMaxMilliseconds) {
    reader.fail(fmt::format("a duration of {} ms", event.duration),
                fmt::format("a whole number from 0 to {}", kMaxMilliseconds));
  }
  return *duration;
}

}  // namespace

AvailabilityParts import_event_lines(TextReader& reader) {
  NodeEvents events(reader);
  std::int64_t duration = 0;
  bool ended = false;
  bool any = false;
  while (reader.next_line()) {
    const std::string_view line = reader.line();
    if (is_blank(line)) {
      ended = true;
      continue;
    }
    if (ended) reader.fail("there is a blank line before this event", kEventLine);
    EventLine event;
    const bool good = nlohmann::json::sax_parse(line.begin(), line.end(), &event);
    // The first line may show that the file has another format.
    const std::string_view accepted = any ? kEventLine : kFormatsAccepted;
    if (!event.flaw.empty()) reader.fail(event.flaw, accepted);
    if (!good || !event.is_event() || event.kind.empty()) {
      reader.fail(fmt::format("{} is not an event", excerpt(line)), accepted);
    }
    apply(reader, event, events);
    duration = duration_of(reader, event);
    any = true;
  }
  if (!any) {
    throw Error(fmt::format("{}: the file is empty; accepted: {}", reader.source(), kEventLine));
  }
  return events.take(duration);
}

}  // namespace rubato::detail
