// A line is split into views of itself, so that files of millions of rows need no copies; only a
// quoted field with doubled quotes has a text of its own. Unlike RFC 4180, the splitter trims
// blanks around fields, within quotes and outside of them. Splitting ends at the first flaw, which
// the caller reports with file and line. A field whose quote stays open (CsvFields::is_open) may
// continue in the next line; the caller then joins the lines and splits them again.

#include "csv.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "base/core/throw_error.hpp"
#include "text.hpp"

namespace rubato::detail {

namespace {

constexpr char kQuote = '"';

constexpr std::string_view kAnyBlank = " \t";

// The blanks around a field do not belong to it. A tab is one of them unless it is the separator.
std::string_view blanks(std::string_view separator) {
  if (separator == kBlanks) return "";
  return separator == "\t" ? " " : kAnyBlank;
}

std::size_t find_separator(std::string_view text, std::string_view separator) {
  return separator == kBlanks ? text.find_first_of(kAnyBlank) : text.find(separator);
}

// No-break spaces in UTF-8, which spreadsheets and web pages put beside numbers: U+00A0, U+2007 and
// U+202F.
constexpr std::array<std::string_view, 3> kNoBreakSpaces{"\xC2\xA0", "\xE2\x80\x87",
                                                         "\xE2\x80\xAF"};

std::string_view without_blanks(std::string_view text, std::string_view blank) {
  std::size_t before = 0;
  do {
    before = text.size();
    text = trimmed(text, blank);
    for (const std::string_view space : kNoBreakSpaces) {
      if (text.starts_with(space)) text.remove_prefix(space.size());
      if (text.ends_with(space)) text.remove_suffix(space.size());
    }
  } while (text.size() < before);
  return text;
}

// Position of the quote that closes the one at `begin`, or npos. Two in a row stand for one.
std::size_t closing_quote(std::string_view line, std::size_t begin) {
  for (std::size_t at = line.find(kQuote, begin + 1); at != std::string_view::npos;
       at = line.find(kQuote, at + 2)) {
    if (at + 1 == line.size() || line[at + 1] != kQuote) return at;
  }
  return std::string_view::npos;
}

// Takes the field at the front of `rest`, which then begins with the separator or is empty.
std::string_view take_field(std::string_view& rest, std::string_view separator, CsvFields& fields) {
  const std::string_view blank = blanks(separator);
  const std::size_t begin = rest.find_first_not_of(blank);
  if (begin == std::string_view::npos || rest[begin] != kQuote) {
    const std::string_view field = rest.substr(0, find_separator(rest, separator));
    rest.remove_prefix(field.size());
    return without_blanks(field, blank);
  }
  const std::size_t close = closing_quote(rest, begin);
  if (close == std::string_view::npos) {
    fields.flaw = "a quote is not closed";
    fields.is_open = true;
    rest = {};
    return {};
  }
  const std::string_view within = rest.substr(begin + 1, close - begin - 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(blank, close + 1), rest.size()));
  if (!rest.empty() && find_separator(rest, separator) != 0) {
    fields.flaw = "something follows a closing quote";
  }
  if (within.find(kQuote) == std::string_view::npos) return without_blanks(within, blank);
  auto text = std::make_unique<std::string>();
  for (std::size_t at = 0; at < within.size(); ++at) {
    *text += within[at];
    if (within[at] == kQuote) ++at;
  }
  fields.unquoted.push_back(std::move(text));
  return without_blanks(*fields.unquoted.back(), blank);
}

}  // namespace

bool CsvFields::empty() const {
  return flaw.empty() && std::all_of(fields.begin(), fields.end(),
                                     [](std::string_view field) { return field.empty(); });
}

void CsvFields::drop_empty_beyond(std::size_t columns) {
  while (fields.size() > columns && fields.back().empty()) fields.pop_back();
}

void split_csv(std::string_view line, std::string_view separator, CsvFields& fields) {
  fields.fields.clear();
  fields.unquoted.clear();
  fields.flaw = {};
  fields.is_open = false;
  const bool by_blanks = separator == kBlanks;
  if (by_blanks) line = without_blanks(line, kAnyBlank);
  while (true) {
    fields.fields.push_back(take_field(line, separator, fields));
    if (line.empty() || !fields.flaw.empty()) return;
    line.remove_prefix(by_blanks ? line.find_first_not_of(kAnyBlank) : separator.size());
  }
}

namespace {

// The field without ".0", which a column of floating-point numbers has in every row.
std::string_view without_fraction(std::string_view field) {
  const std::string_view whole =
      field.substr(0, field.size() - std::min<std::size_t>(field.size(), 2));
  const bool digits =
      !whole.empty() && whole.find_first_not_of("-0123456789") == std::string_view::npos;
  return digits && field.ends_with(".0") ? whole : field;
}

}  // namespace

std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string shown;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  if (text.size() > kLongest) shown += "...";
  return fmt::format("'{}'", shown);
}

void require_no_utf16(std::string_view beginning, const std::string& source) {
  const bool marked = beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF");
  const std::string_view first = beginning.substr(0, 2);
  const bool half_zero = first.size() == 2 && (first[0] == '\0') != (first[1] == '\0');
  if (!marked && !half_zero) return;
  throw_error("{}: it is in UTF-16; accepted: a text in UTF-8", source);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

bool is_name(std::string_view field, std::string_view name) {
  return std::equal(field.begin(), field.end(), name.begin(), name.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

std::optional<std::int64_t> whole_number(std::string_view field) {
  return parsed_number<std::int64_t>(without_fraction(field));
}

std::string_view flaw_of(std::string_view field) {
  field = without_fraction(field);
  if (field.empty()) return "is empty";
  if (!is_number(field)) return "is not a number";
  const bool whole = field.find_first_not_of("-0123456789") == std::string_view::npos;
  if (!whole) return "is not a whole number";
  if (field.starts_with('-')) return "is negative";
  return field.find_first_not_of('0') == std::string_view::npos ? "is zero" : "is too large";
}

}  // namespace rubato::detail

namespace rubato {

std::string csv_field(std::string_view text) {
  const bool trims = detail::without_blanks(text, detail::blanks(",")).size() < text.size();
  if (!trims && text.find_first_of("\",\n\r") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char letter : text) {
    if (letter == '"') field += '"';
    field += letter;
  }
  return field + '"';
}

}  // namespace rubato
