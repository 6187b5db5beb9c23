// The format is recognised by the first lines, which TextReader has buffered before anything is
// taken from it, so a pipe works like a file. Common mistakes, a trace of steps in place of an
// availability and events with a header, are reported before an importer sees the file. The
// importers (import_samples.cpp, import_events.cpp) return parts, to which this file adds the name
// and what follows the end.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>
#include <rubato/steps/availability.hpp>

#include "availability_parts.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/text/text_reader.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

using detail::TextReader;

// The first line of a text, or as much of it as is there.
std::string_view first_line(std::string_view beginning) {
  return beginning.substr(0, beginning.find_first_of("\r\n"));
}

// The fields of the first line, with the separator that gives most fields.
detail::CsvFields first_fields(std::string_view beginning) {
  detail::CsvFields best;
  for (const char separator : detail::kSeparators) {
    detail::CsvFields cells;
    detail::split_csv(first_line(beginning), separator, cells);
    if (cells.fields.size() > best.fields.size()) best = std::move(cells);
  }
  return best;
}

// True if the first line has no number and the second is an event, whose header it is.
bool has_header_of_events(std::string_view beginning) {
  if (is_number(first_fields(beginning).fields.front())) return false;
  const std::size_t end = beginning.find_first_of("\r\n");
  if (end == std::string_view::npos) return false;
  const std::size_t next = beginning.find_first_not_of("\r\n", end);
  if (next == std::string_view::npos) return false;
  const detail::CsvFields cells = first_fields(beginning.substr(next));
  const auto& fields = cells.fields;
  return fields.size() >= 2 && is_number(fields[0]) &&
         (detail::is_name(fields[1], "add") || detail::is_name(fields[1], "remove"));
}

// True if a file is a trace of steps: its header begins with `step`.
bool has_steps(std::string_view beginning) {
  return detail::is_name(first_fields(beginning).fields.front(), "step");
}

}  // namespace

std::optional<AvailabilityFormat> detail::format_of(std::string_view beginning) {
  const detail::CsvFields cells = first_fields(beginning);
  const auto& fields = cells.fields;
  if (std::any_of(fields.begin(), fields.end(), detail::is_time)) {
    return AvailabilityFormat::samples;
  }
  const bool event =
      fields.size() >= 2 && is_number(fields[0]) && !is_number(fields[1]) && !fields[1].empty();
  return event ? std::optional(AvailabilityFormat::events) : std::nullopt;
}

namespace {

detail::AvailabilityParts import(TextReader& reader, AvailabilityFormat format,
                                 const DeviceColumns& columns) {
  if (format == AvailabilityFormat::samples) return detail::import_samples(reader, columns);
  if (columns.column.empty() && columns.zone.empty()) return detail::import_events(reader);
  throw_error(
      "{}: a file of events has no columns; accepted: column=NAME and zone=TEXT for samples",
      reader.source());
}

}  // namespace

Availability detail::read_availability(TextReader& reader, std::optional<AvailabilityFormat> format,
                                       const DeviceColumns& columns, TraceEnd end) {
  if (!format && has_steps(reader.beginning())) {
    throw_error(
        "{}:1: this is a trace of steps, without times and numbers of devices; accepted: {}",
        reader.source(), detail::kFormatsAccepted);
  }
  if (!format) format = format_of(reader.beginning());
  if (format != AvailabilityFormat::events && has_header_of_events(reader.beginning())) {
    throw_error("{}:1: events have no header, as their times are always milliseconds; accepted: {}",
                reader.source(), detail::kEvent);
  }
  // A file of no known format is left to this importer, which has the best messages about it.
  detail::AvailabilityParts imported =
      import(reader, format.value_or(AvailabilityFormat::samples), columns);
  return {std::move(imported.changes),
          imported.length,
          reader.source(),
          end,
          imported.sample_gap,
          std::move(imported.prices),
          std::move(imported.origin)};
}

namespace {

TextReader open(const std::filesystem::path& path) {
  return TextReader::open(path, "the trace",
                          "a CSV file with the header 'step,batchsize' or 'step,batchsize,cores', "
                          "or a file of availability "
                          "(docs/traces.md)");
}

}  // namespace

Availability read_availability(const std::filesystem::path& path,
                               std::optional<AvailabilityFormat> format, TraceEnd end,
                               const DeviceColumns& columns) {
  TextReader reader = open(path);
  return detail::read_availability(reader, format, columns, end);
}

Availability parse_availability(std::string_view text, std::string source,
                                std::optional<AvailabilityFormat> format, TraceEnd end,
                                const DeviceColumns& columns) {
  TextReader reader = TextReader::of(text, std::move(source));
  return detail::read_availability(reader, format, columns, end);
}

Zones read_zones(const std::filesystem::path& path, TraceEnd end, const std::string& part) {
  TextReader reader = open(path);
  if (detail::format_of(reader.beginning()) == AvailabilityFormat::events) {
    throw_error(
        "{}: a file of events has no columns; accepted: samples with a column for each zone",
        reader.source());
  }
  std::vector<Zone> zones;
  for (auto& [name, parts] : detail::import_zones(reader, {.zone = part})) {
    const std::string source = fmt::format("{}, {}", reader.source(), name);
    zones.push_back(
        {.name = std::move(name),
         .availability = {std::move(parts.changes), parts.length, source, end, parts.sample_gap,
                          std::move(parts.prices), std::move(parts.origin)}});
  }
  return {std::move(zones), reader.source()};
}

std::variant<Trace, Availability> read_trace_or_availability(const std::filesystem::path& path,
                                                             TraceEnd end,
                                                             const DeviceColumns& columns) {
  TextReader reader = open(path);
  if (detail::is_blank(reader.beginning())) {
    throw_error("{}: the file is empty; accepted: {}, or {}", path.string(), detail::kStepsAccepted,
                detail::kFormatsAccepted);
  }
  const bool is_trace = has_steps(reader.beginning());
  if (!is_trace && !detail::format_of(reader.beginning()) &&
      !has_header_of_events(reader.beginning())) {
    throw_error(
        "{}: it begins with {}, which is neither a trace nor an availability; accepted: {}, or {}",
        path.string(), detail::excerpt(first_line(reader.beginning())), detail::kStepsAccepted,
        detail::kFormatsAccepted);
  }
  if (!is_trace) return detail::read_availability(reader, {}, columns, end);
  if (!columns.column.empty() || !columns.zone.empty()) {
    throw_error(
        "{}: a trace has no columns of devices; accepted: column=NAME and zone=TEXT for devices "
        "over time",
        path.string());
  }
  return Trace::parse_csv(reader.rest(), path.string(), end);
}

}  // namespace rubato
