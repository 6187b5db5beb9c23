#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>

#include "base/core/tables/field.hpp"
#include "importers.hpp"

namespace rubato::detail {

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
