// Every separator that could be meant is tried out on the beginning of the table, with the reader
// that will read the whole of it, so that quotes, comments and line breaks within quotes mean the
// same in both. What the usual separator divides is left to it without a trial: files that could
// always be read stay the same tables.

#include "separator.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/text/text.hpp"
#include "base/core/text/text_reader.hpp"
#include "base/core/throw_error.hpp"
#include "csv_table.hpp"

namespace rubato {

namespace {

constexpr int kTriedRows = 100;

// The whole lines of a text that is the beginning of a longer one.
std::string_view whole_lines(std::string_view beginning) {
  return beginning.substr(0, beginning.find_last_of("\r\n") + 1);
}

// The number of fields that each of the first rows has, at most `most` of them, of which there are
// at least `least`; nothing if the rows cannot be read so.
std::optional<std::size_t> fields_of(std::string_view text, const TableFormat& format, int least,
                                     int most) {
  try {
    CsvTable table(detail::TextReader::of(text, {}), format);
    int rows = 0;
    while (rows < most && table.next()) ++rows;
    return rows < least ? std::nullopt : std::optional(table.names().size());
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string parse_separator(std::string_view text) {
  for (const auto& [separator, name] : kNamedSeparators) {
    if (text == separator || text == name) return std::string(separator);
  }
  if (text.find_first_of("\"\r\n") != std::string_view::npos) {
    throw_error("{} has a quote or a line end; accepted: {}, or a text without these",
                detail::excerpt(text), choice_names(kNamedSeparators, ", "));
  }
  const std::string_view separator = trimmed(text, " \t");
  return std::string(separator.empty() ? detail::kBlanks : separator);
}

std::string shown_separator(std::string_view separator) {
  const std::string_view name = choice_name(kNamedSeparators, separator);
  return name.empty() ? detail::excerpt(separator) : std::string(name);
}

char usual_separator(std::string_view first_line, Decimal decimal) {
  return *std::ranges::max_element(detail::kSeparators, {}, [&](char separator) {
    const bool in_numbers = separator == ',' && decimal == Decimal::comma;
    return in_numbers ? 0 : std::ranges::count(first_line, separator);
  });
}

std::string found_separator(const std::filesystem::path& file, TableFormat format) {
  const detail::TextReader reader = open_table(file);
  if (reader.separator()) return {};
  const std::string_view beginning = reader.beginning();
  // A file of less than this is there as a whole, whether or not its last line has an end.
  const bool is_whole = beginning.size() < detail::kPieceOfText - detail::kByteOrderMark.size();
  const std::string_view text = is_whole ? beginning : whole_lines(beginning);
  // The names of columns are a row like the others here.
  format.has_header = false;
  if (fields_of(text, format, 1, 1).value_or(1) > 1) return {};
  const auto divides = [&](std::string_view separator) {
    format.separator = separator;
    return fields_of(text, format, 2, kTriedRows).value_or(1) > 1;
  };
  std::vector<std::string> found;
  for (const std::string_view separator : {",", ";", "\t", "|"}) {
    if (divides(separator)) found.emplace_back(separator);
  }
  if (found.empty() && divides(detail::kBlanks)) return std::string(detail::kBlanks);
  return found.size() == 1 ? found.front() : std::string();
}

}  // namespace rubato
