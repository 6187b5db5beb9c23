// CsvTable makes records of the lines of a TextReader: it passes over comments, joins lines for as
// long as a quote is open, chooses the separator once, by the first line, unless the format names
// it, and checks every record for UTF-8, so that later code can rely on it. A gzipped table is
// unpacked by a stream buffer below the same reader. The functions at the end decide what a field
// says: a number, a truth or a missing value. resembles_number() is a heuristic for texts that were
// meant as numbers; it only decides whether a column is refused (table_encoding.cpp), and never
// what a field is converted to.

#include "csv_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <istream>
#include <memory>
#include <set>
#include <streambuf>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "base/core/text/csv.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "loop/data/input_file.hpp"
#include "separator.hpp"
#include "text.hpp"

namespace rubato {

namespace {

using detail::excerpt;

// The text in a file that gzip has packed.
class UnpackedBuffer : public std::streambuf {
 public:
  UnpackedBuffer(const std::filesystem::path& file, std::string accepted)
      : file_(file, std::move(accepted)) {}

 protected:
  int_type underflow() override {
    const std::size_t size =
        file_.read({reinterpret_cast<std::uint8_t*>(piece_.data()), piece_.size()});
    setg(piece_.data(), piece_.data(), piece_.data() + size);
    return size == 0 ? traits_type::eof() : traits_type::to_int_type(piece_.front());
  }

 private:
  detail::GzipFile file_;
  std::vector<char> piece_ = std::vector<char>(std::size_t{1} << 16U);
};

class UnpackedStream : public std::istream {
 public:
  UnpackedStream(const std::filesystem::path& file, std::string accepted)
      : std::istream(nullptr), buffer_(file, std::move(accepted)) {
    rdbuf(&buffer_);
    // Errors of the buffer are passed on.
    exceptions(std::ios::badbit);
  }

 private:
  UnpackedBuffer buffer_;
};

// The first whole number that a double has in common with the next one.
constexpr double kFirstInexact = 9007199254740992.0;

bool is_ascii_letter(char32_t character) {
  return (character >= U'a' && character <= U'z') || (character >= U'A' && character <= U'Z');
}

// Beyond ASCII, all characters but signs, punctuation, currencies and operators are letters.
bool is_letter(char32_t character) {
  if (character < 0x80) return is_ascii_letter(character);
  const bool is_sign = character < 0xC0 || (character >= 0x2000 && character < 0x20D0) ||
                       (character >= 0x2200 && character < 0x2300);
  return !is_sign;
}

// Returns true for words such as "EUR" and "kg".
bool is_unit(std::string_view word) {
  constexpr std::size_t kLongest = 3;
  return !word.empty() && word.size() <= kLongest && std::ranges::all_of(word, [](char c) {
    return is_ascii_letter(static_cast<unsigned char>(c));
  });
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_month(std::string_view word) {
  constexpr std::array<std::string_view, 12> kMonths{
      "january", "february", "march",     "april",   "may",      "june",
      "july",    "august",   "september", "october", "november", "december"};
  constexpr std::size_t kShort = 3;
  return std::ranges::any_of(kMonths, [&](std::string_view month) {
    return detail::is_name(word, month) || detail::is_name(word, month.substr(0, kShort));
  });
}

// Returns whether a word may be the unit of the digits before it, as in "0GB" and "5k". Those of
// one letter are the usual ones, because "12A" is a seat; "1st" is a category.
bool is_attached_unit(std::string_view word) {
  constexpr std::string_view kLetters = "BGKLMTVWdghklms";
  constexpr std::array<std::string_view, 4> kOrdinals{"st", "nd", "rd", "th"};
  if (word.size() == 1) return kLetters.find(word.front()) != std::string_view::npos;
  return is_unit(word) && std::ranges::none_of(kOrdinals, [&](std::string_view ordinal) {
           return detail::is_name(word, ordinal);
         });
}

// Returns whether letters may belong to a number or a time that has so many digits; `before` and
// `after` are the characters around them, or 0.
bool may_be_in_number(std::string_view word, char before, char after, std::int64_t digits) {
  constexpr std::int64_t kDate = 8;
  constexpr std::int64_t kQuarter = 5;
  if (is_month(word) || detail::is_name(word, "am") || detail::is_name(word, "pm")) return true;
  // 2024-05-01T00:00:00Z
  const bool is_date = digits >= kDate && is_digit(before);
  if (is_date && detail::is_name(word, "t") && is_digit(after)) return true;
  if (is_date && detail::is_name(word, "z") && after == '\0') return true;
  // Q1 2024, 2024-W05
  const bool is_part_of_year = detail::is_name(word, "q") || detail::is_name(word, "w");
  if (is_part_of_year && digits >= kQuarter && is_digit(after)) return true;
  // 1h30m, 5km/h
  const bool is_duration =
      word.size() == 1 && std::string_view("dhms").find(word.front()) != std::string_view::npos;
  if (is_digit(after) && !is_duration) return false;
  return (is_digit(before) && is_attached_unit(word)) || (before == '/' && is_unit(word));
}

}  // namespace

detail::TextReader open_table(const std::filesystem::path& file) {
  // A pipe cannot be read twice.
  std::error_code ignored;
  if (std::filesystem::is_fifo(file, ignored)) {
    throw_error("{}: is a pipe; accepted: a file", file.string());
  }
  constexpr std::string_view kTable = "a table in CSV with a header, which gzip may have packed";
  detail::TextReader reader = detail::TextReader::open(file, "the table", kTable);
  if (reader.beginning().starts_with("\x1F\x8B")) {
    reader = {std::make_unique<UnpackedStream>(file, std::string(kTable)), file.string()};
  }
  refuse_binary(reader.beginning(), file, kTable);
  return reader;
}

CsvTable::CsvTable(detail::TextReader reader, const TableFormat& format)
    : reader_(std::move(reader)), format_(format), has_row_(!format.has_header) {
  const bool has_header = format.has_header;
  if (!next_record()) {
    reader_.fail(has_header ? "there is no header" : "there is no row",
                 has_header ? "a line with the columns' names" : "a row for each sample");
  }
  for (const std::string_view field : cells_.fields) {
    names_.push_back(has_header ? std::string(field) : fmt::to_string(names_.size() + 1));
  }
  check_names();
}

std::size_t CsvTable::column(const std::string& name) const {
  const auto found = std::ranges::find(names_, name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  const std::vector<std::string_view> names(names_.begin(), names_.end());
  throw_error("{}: {}", source(), unknown_name_message("column", name, names));
}

bool CsvTable::next() {
  if (std::exchange(has_row_, false)) return true;
  if (!next_record()) return false;
  if (cells_.fields.size() != names_.size()) {
    fail(fmt::format("{} fields", cells_.fields.size()),
         fmt::format("{}, as the header has", names_.size()));
  }
  return true;
}

void CsvTable::fail(std::string_view wrong, std::string_view accepted) const {
  throw_error("{}:{}: {}; accepted: {}", source(), line_, wrong, accepted);
}

void CsvTable::fail(std::size_t column, std::string_view wrong, std::string_view accepted) const {
  fail(fmt::format("column {} {}", excerpt(names_[column]), wrong), accepted);
}

bool CsvTable::next_record() {
  const auto is_comment = [&](std::string_view line) {
    return !format_.comment.empty() && line.starts_with(format_.comment);
  };
  do {
    if (!reader_.next_line()) return false;
  } while (detail::is_blank(reader_.line()) || is_comment(reader_.line()));
  line_ = reader_.line_number();
  // The line that names the columns determines the separator.
  if (format_.separator.empty()) {
    format_.separator =
        reader_.separator().value_or(usual_separator(reader_.line(), format_.decimal));
  }
  std::string_view record = reader_.line();
  detail::split_csv(record, format_.separator, cells_);
  if (cells_.is_open) record = joined_record();
  if (!cells_.flaw.empty()) {
    fail(fmt::format("{} in {}", cells_.flaw, excerpt(record)), "quotes in pairs");
  }
  if (const std::size_t end = end_of_utf8(record); end < record.size()) {
    fail(fmt::format("byte {} of the row belongs to no character", end + 1), "a table in UTF-8");
  }
  return true;
}

std::string_view CsvTable::joined_record() {
  // A quote that is never closed must not swallow the rest of a large file.
  constexpr std::int64_t kMostLines = 1000;
  constexpr std::size_t kMostBytes = std::size_t{1} << 20U;
  record_ = reader_.line();
  while (cells_.is_open && reader_.line_number() - line_ < kMostLines &&
         record_.size() < kMostBytes && reader_.next_line()) {
    record_ += '\n';
    record_ += reader_.line();
    detail::split_csv(record_, format_.separator, cells_);
  }
  return record_;
}

void CsvTable::check_names() const {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].empty()) {
      fail(fmt::format("column {} has no name", i + 1),
           "a name for each column, or header=no where the first line is data");
    }
    if (!seen.insert(names_[i]).second) {
      fail(i, "occurs twice", "names that differ, or header=no where the first line is data");
    }
  }
}

std::optional<double> number_in(std::string_view field, Decimal decimal) {
  // A copy is made only if from_chars() does not accept the field as it is.
  constexpr std::string_view kMinus = "\xE2\x88\x92";
  std::string copy;
  const std::size_t comma = decimal == Decimal::comma ? field.find(',') : std::string_view::npos;
  if (decimal == Decimal::comma && field.find('.') != std::string_view::npos) return std::nullopt;
  if (comma != std::string_view::npos || field.starts_with(kMinus)) {
    copy = field;
    if (comma != std::string_view::npos) copy[comma] = '.';
    if (field.starts_with(kMinus)) copy.replace(0, kMinus.size(), "-");
    field = copy;
  }
  // from_chars() does not accept a plus, and no other sign may follow it.
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  const auto value = parsed_number<double>(field);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

bool ExactNumber::operator<(const ExactNumber& other) const {
  if (value != other.value) return value < other.value;
  const auto size = [](const ExactNumber& number) {
    return std::pair(number.digits.size(), std::string_view(number.digits));
  };
  return value < 0 ? size(other) < size(*this) : size(*this) < size(other);
}

std::optional<ExactNumber> exact_number_in(std::string_view field, Decimal decimal) {
  const auto value = number_in(field, decimal);
  if (!value) return std::nullopt;
  ExactNumber number{.value = *value};
  if (std::abs(*value) < kFirstInexact) return number;
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t begin = std::min(field.find_first_of("123456789"), field.size());
  std::string_view digits = field.substr(begin);
  const std::size_t end = digits.find_first_not_of(kDigits);
  if (end != std::string_view::npos) {
    // Zeros may follow the point; a number with an exponent is written out.
    const bool is_whole = digits.find_first_not_of('0', end + 1) == std::string_view::npos;
    if (!is_whole) {
      number.digits = fmt::format("{:.0f}", std::abs(*value));
      return number;
    }
    digits = digits.substr(0, end);
  }
  number.digits = digits;
  return number;
}

bool resembles_number(std::string_view text) {
  // A blank separates the unit from the digits.
  const std::size_t blank = text.find(' ');
  if (blank != std::string_view::npos) {
    const std::size_t last = text.rfind(' ');
    if (is_unit(text.substr(0, blank))) {
      text.remove_prefix(blank);
    } else if (is_unit(text.substr(last + 1))) {
      text = text.substr(0, last);
    }
  }
  const auto digits = std::ranges::count_if(text, is_digit);
  char before = '\0';
  while (!text.empty()) {
    if (is_ascii_letter(static_cast<unsigned char>(text.front()))) {
      const auto letters = std::ranges::find_if_not(
          text, [](char c) { return is_ascii_letter(static_cast<unsigned char>(c)); });
      const auto size = static_cast<std::size_t>(letters - text.begin());
      const char after = size < text.size() ? text[size] : '\0';
      if (!may_be_in_number(text.substr(0, size), before, after, digits)) return false;
      text.remove_prefix(size);
      before = 'a';
      continue;
    }
    before = text.front();
    const auto character = take_character(text);
    if (!character || is_letter(*character)) return false;
  }
  return digits > 0;
}

std::string_view truth_in(std::string_view text) {
  constexpr std::array<std::string_view, 4> kTruths{"true", "false", "yes", "no"};
  const auto* const found = std::ranges::find_if(
      kTruths, [&](std::string_view truth) { return detail::is_name(text, truth); });
  return found == kTruths.end() ? std::string_view() : *found;
}

bool is_missing(std::string_view field, const std::vector<std::string>& words) {
  if (!words.empty()) return std::ranges::find(words, field) != words.end();
  constexpr std::array<std::string_view, 8> kWords{"",    "na",   "n/a",  "#n/a",
                                                   "nan", "null", "none", "?"};
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return detail::is_name(field, word); });
}

void refuse_missing(const CsvTable& table, std::size_t column) {
  const std::string_view field = table.fields()[column];
  table.fail(column, "has no value",
             fmt::format("a value in every field, missing=mean or missing=drop{}",
                         field.empty() ? ""
                                       : fmt::format(", or missing=error:empty where {} is a text",
                                                     excerpt(field))));
}

}  // namespace rubato
