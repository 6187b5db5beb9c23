#include "csv_line.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rubato::detail {

namespace {

constexpr char kQuote = '"';

// A tab is a blank unless it is the separator.
std::string_view blanks(char separator) {
  return separator == '\t' ? " " : " \t";
}

// No-break spaces in UTF-8, which spreadsheets and web pages put beside numbers: U+00A0, U+2007 and
// U+202F.
constexpr std::array<std::string_view, 3> kNoBreakSpaces{"\xC2\xA0", "\xE2\x80\x87",
                                                         "\xE2\x80\xAF"};

std::string_view trimmed(std::string_view text, std::string_view blank) {
  std::size_t before = 0;
  do {
    before = text.size();
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    text = text.substr(0, text.find_last_not_of(blank) + 1);
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
std::string_view take_field(std::string_view& rest, char separator, CsvFields& fields) {
  const std::string_view blank = blanks(separator);
  const std::size_t begin = rest.find_first_not_of(blank);
  if (begin == std::string_view::npos || rest[begin] != kQuote) {
    const std::string_view field = rest.substr(0, rest.find(separator));
    rest.remove_prefix(field.size());
    return trimmed(field, blank);
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
  if (!rest.empty() && rest.front() != separator) {
    fields.flaw = "something follows a closing quote";
  }
  if (within.find(kQuote) == std::string_view::npos) return trimmed(within, blank);
  auto text = std::make_unique<std::string>();
  for (std::size_t at = 0; at < within.size(); ++at) {
    *text += within[at];
    if (within[at] == kQuote) ++at;
  }
  fields.unquoted.push_back(std::move(text));
  return trimmed(*fields.unquoted.back(), blank);
}

}  // namespace

bool CsvFields::empty() const {
  return flaw.empty() && std::all_of(fields.begin(), fields.end(),
                                     [](std::string_view field) { return field.empty(); });
}

void CsvFields::drop_empty_beyond(std::size_t columns) {
  while (fields.size() > columns && fields.back().empty()) fields.pop_back();
}

void split_csv(std::string_view line, char separator, CsvFields& fields) {
  fields.fields.clear();
  fields.unquoted.clear();
  fields.flaw = {};
  fields.is_open = false;
  while (true) {
    fields.fields.push_back(take_field(line, separator, fields));
    if (line.empty() || !fields.flaw.empty()) return;
    line.remove_prefix(1);
  }
}

}  // namespace rubato::detail
