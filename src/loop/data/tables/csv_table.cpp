#include "csv_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/tables/field.hpp"
#include "utf8.hpp"

namespace rubato {

namespace {

using detail::excerpt;

detail::TextReader open(const std::filesystem::path& file) {
  // It is read twice.
  std::error_code ignored;
  if (std::filesystem::is_fifo(file, ignored)) {
    throw Error(fmt::format("{}: is a pipe; accepted: a file", file.string()));
  }
  return detail::TextReader::open(file, "the table", "a table in CSV with a header");
}

char separator_of(std::string_view header) {
  return *std::ranges::max_element(detail::kSeparators, {}, [&](char separator) {
    return std::ranges::count(header, separator);
  });
}

}  // namespace

CsvTable::CsvTable(const std::filesystem::path& file) : reader_(open(file)) {
  if (!next_record()) reader_.fail("there is no header", "a line with the columns' names");
  for (const std::string_view field : cells_.fields) names_.emplace_back(field);
  check_names();
}

std::size_t CsvTable::column(const std::string& name) const {
  const auto found = std::ranges::find(names_, name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  const std::vector<std::string_view> names(names_.begin(), names_.end());
  throw Error(fmt::format("{}: {}", source(), unknown_name_message("column", name, names)));
}

bool CsvTable::next() {
  if (!next_record()) return false;
  if (cells_.fields.size() != names_.size()) {
    fail(fmt::format("{} fields", cells_.fields.size()),
         fmt::format("{}, as the header has", names_.size()));
  }
  return true;
}

std::optional<std::size_t> CsvTable::missing() const {
  const auto found = std::ranges::find_if(cells_.fields, is_missing);
  if (found == cells_.fields.end()) return std::nullopt;
  return static_cast<std::size_t>(found - cells_.fields.begin());
}

void CsvTable::fail(std::string_view wrong, std::string_view accepted) const {
  throw Error(fmt::format("{}:{}: {}; accepted: {}", source(), line_, wrong, accepted));
}

void CsvTable::fail(std::size_t column, std::string_view wrong, std::string_view accepted) const {
  fail(fmt::format("column {} {}", excerpt(names_[column]), wrong), accepted);
}

bool CsvTable::next_record() {
  do {
    if (!reader_.next_line()) return false;
  } while (detail::is_blank(reader_.line()));
  line_ = reader_.line_number();
  // The line that names the columns says what stands between them.
  if (names_.empty()) separator_ = separator_of(reader_.line());
  std::string_view record = reader_.line();
  detail::split_csv(record, separator_, cells_);
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
  // A quote that nobody closes must not take in the rest of a large file.
  constexpr std::int64_t kMostLines = 1000;
  constexpr std::size_t kMostBytes = std::size_t{1} << 20U;
  record_ = reader_.line();
  while (cells_.is_open && reader_.line_number() - line_ < kMostLines &&
         record_.size() < kMostBytes && reader_.next_line()) {
    record_ += '\n';
    record_ += reader_.line();
    detail::split_csv(record_, separator_, cells_);
  }
  return record_;
}

void CsvTable::check_names() const {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].empty()) {
      fail(fmt::format("column {} has no name", i + 1), "a name for each column");
    }
    if (!seen.insert(names_[i]).second) fail(i, "is there twice", "names that differ");
  }
}

std::optional<double> number_in(std::string_view field) {
  // from_chars() takes no plus, and what is behind it must not be another sign.
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

bool is_missing(std::string_view field) {
  constexpr std::array<std::string_view, 8> kWords{"",    "na",   "n/a",  "#n/a",
                                                   "nan", "null", "none", "?"};
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return detail::is_name(field, word); });
}

}  // namespace rubato
