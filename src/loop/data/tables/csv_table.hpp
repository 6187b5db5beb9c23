#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/tables/csv_line.hpp"
#include "base/core/tables/text_reader.hpp"
#include "csv_options.hpp"

namespace rubato {

/// A table, row after row. A field in quotes may have line breaks within.
class CsvTable {
 public:
  /// Reads the first line, which names the columns where there is a header. Throws Error where it
  /// is missing, or where its names are not different.
  CsvTable(const std::filesystem::path& file, bool has_header, Decimal decimal);

  [[nodiscard]] const std::string& source() const { return reader_.source(); }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// Throws Error where there is no column of this name.
  [[nodiscard]] std::size_t column(const std::string& name) const;

  /// Reads the next row; false at the end. Blank lines are left out. Throws Error for a row with
  /// more or fewer fields than there are names.
  bool next();
  /// Of the row that was read last, valid until the next one is.
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return cells_.fields; }
  /// Where that row begins.
  [[nodiscard]] std::int64_t line() const { return line_; }

  /// Throws Error about the row that was read last, or about a field of it.
  [[noreturn]] void fail(std::string_view wrong, std::string_view accepted) const;
  [[noreturn]] void fail(std::size_t column, std::string_view wrong,
                         std::string_view accepted) const;

 private:
  // The next line that is not blank, and those that a quote goes on in; false at the end.
  bool next_record();
  // That line and those that its open quote goes on in, split.
  std::string_view joined_record();
  void check_names() const;

  detail::TextReader reader_;
  // What is split, where it has more than one line.
  std::string record_;
  std::int64_t line_ = 0;
  Decimal decimal_;
  char separator_ = ',';
  detail::CsvFields cells_;
  std::vector<std::string> names_;
  // If this is true, the first line is a row that next() has yet to return.
  bool has_row_ = false;
};

/// The finite number that a field writes: "5", "+0.5", "-2e1"; nothing where it is none. With a
/// decimal comma, a number has no point. The minus of typography (U+2212) is one, too.
[[nodiscard]] std::optional<double> number_in(std::string_view field,
                                              Decimal decimal = Decimal::point);

/// Returns whether a text is a number apart from what people write around one and within it:
/// "1,234", "0.5%", "EUR 5", "2024-05-01". It has digits, and no letters but those of a unit.
[[nodiscard]] bool resembles_number(std::string_view text);

/// What is accepted where a field has no value.
inline constexpr std::string_view kEveryValue =
    "a value in every field, missing=mean or missing=drop";

/// Whether the field is what others write where there is no value: "", "NA", "NaN", "null", "?".
[[nodiscard]] bool is_missing(std::string_view field);

}  // namespace rubato
