#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/tables/csv_line.hpp"
#include "base/core/tables/field.hpp"
#include "importers.hpp"

namespace rubato::detail {

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

}  // namespace rubato::detail
