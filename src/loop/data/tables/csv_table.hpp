#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/text/csv.hpp"
#include "base/core/text/text_reader.hpp"
#include "table_encoding.hpp"

namespace rubato {

/// Opens a table, which gzip may have packed. Throws Error for a pipe, a binary file, and a file
/// that cannot be read.
[[nodiscard]] detail::TextReader open_table(const std::filesystem::path& file);

/// Reads a table row by row. A field in quotes may contain line breaks.
class CsvTable {
 public:
  /// Reads the first line, which names the columns if there is a header. Throws Error if it is
  /// missing, or if names occur twice.
  CsvTable(detail::TextReader reader, const TableFormat& format);

  [[nodiscard]] const std::string& source() const { return reader_.source(); }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// Throws Error if there is no column of this name.
  [[nodiscard]] std::size_t column(const std::string& name) const;

  /// Reads the next row; returns false at the end. Blank lines and comments are left out. Throws
  /// Error for a row with more or fewer fields than there are names.
  bool next();
  /// The fields of the row that was read last, valid until the next call of next().
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return cells_.fields; }
  /// The line at which that row begins.
  [[nodiscard]] std::int64_t line() const { return line_; }

  /// Throws Error about the row that was read last, or about one of its fields.
  [[noreturn]] void fail(std::string_view wrong, std::string_view accepted) const;
  [[noreturn]] void fail(std::size_t column, std::string_view wrong,
                         std::string_view accepted) const;

 private:
  // Reads the next line that is neither blank nor a comment, and the lines into which a quote
  // continues; returns false at the end.
  bool next_record();
  // Joins that line with those into which its open quote continues, and splits the result.
  std::string_view joined_record();
  void check_names() const;

  detail::TextReader reader_;
  // The joined lines of a record of more than one line.
  std::string record_;
  std::int64_t line_ = 0;
  // Its separator is empty until the first line is read.
  TableFormat format_;
  detail::CsvFields cells_;
  std::vector<std::string> names_;
  // If this is true, the first line is a row that next() has yet to return.
  bool has_row_ = false;
};

/// Parses the finite number in a field: "5", "+0.5", "-2e1"; returns nothing for other text. With a
/// decimal comma, a number has no point. The typographic minus (U+2212) is accepted, too.
[[nodiscard]] std::optional<double> number_in(std::string_view field,
                                              Decimal decimal = Decimal::point);

/// A number in a field, compared without rounding: doubles are equal for different whole numbers
/// above 2^53, such as the identifiers 740245381351497730 and 740245381351497737.
struct ExactNumber {
  double value = 0;
  /// The digits of such a large number, without zeros before or behind them; otherwise empty.
  std::string digits{};

  [[nodiscard]] bool operator<(const ExactNumber& other) const;
};
[[nodiscard]] std::optional<ExactNumber> exact_number_in(std::string_view field,
                                                         Decimal decimal = Decimal::point);

/// Returns whether a text is a number or a time apart from what people write around one and within
/// it: "1,234", "0.5%", "EUR 5", "16GB", "2024-05-01T12:00Z", "01/Jan/2024". It has digits, and no
/// letters but those of a unit, a month and the like.
[[nodiscard]] bool resembles_number(std::string_view text);

/// Returns "true", "false", "yes" or "no" if the text is that in any case, otherwise nothing: True,
/// TRUE and true are one category.
[[nodiscard]] std::string_view truth_in(std::string_view text);

/// Returns whether the field is one of these marks for a missing value; if they are empty, whether
/// it is a usual one in any case: "", "NA", "N/A", "#N/A", "NaN", "null", "None", "?".
[[nodiscard]] bool is_missing(std::string_view field, const std::vector<std::string>& words);

/// Throws Error because a field of the row that was read last is missing.
[[noreturn]] void refuse_missing(const CsvTable& table, std::size_t column);

}  // namespace rubato
