#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// `text` as a field of CSV: in quotes if a reader would misread it otherwise (a comma, a quote, an
/// end of line, or a blank that would be trimmed), unchanged if not.
[[nodiscard]] std::string csv_field(std::string_view text);

}  // namespace rubato

namespace rubato::detail {

/// The fields of a line of a CSV file.
struct CsvFields {
  /// The fields without blanks (including no-break spaces) and quotes around them; two quotes
  /// within quotes are one.
  std::vector<std::string_view> fields;
  /// Texts of fields with doubled quotes, which the line does not contain literally.
  std::vector<std::unique_ptr<const std::string>> unquoted;
  /// The error in quoting; empty if there is none.
  std::string_view flaw;
  /// True if the error is a quote that the line does not close.
  bool is_open = false;

  /// True if there is nothing but separators.
  [[nodiscard]] bool empty() const;
  /// Drops empty fields at the end while there are more than `columns`.
  void drop_empty_beyond(std::size_t columns);
};

/// The separator that stands for any number of blanks and tabs; those around a line separate
/// nothing.
inline constexpr std::string_view kBlanks = " ";

/// Splits `line` at `separator`, which may also stand within quotes: kBlanks, a tab, or a text that
/// neither is empty nor begins or ends with a blank. Reuses the memory of `fields`.
void split_csv(std::string_view line, std::string_view separator, CsvFields& fields);
inline void split_csv(std::string_view line, char separator, CsvFields& fields) {
  split_csv(line, std::string_view(&separator, 1), fields);
}

}  // namespace rubato::detail

// Helpers of all text readers for a line or a field.

namespace rubato::detail {

/// Separators that a header may use; the rows then use the same.
inline constexpr std::array<char, 3> kSeparators{',', ';', '\t'};

/// The byte order mark that may precede text in UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// A piece of the file for a one-line message: quoted, short, and without control characters.
[[nodiscard]] std::string excerpt(std::string_view text);

/// Throws Error about `source` if its beginning shows UTF-16: a byte order mark, or a first
/// character of which half is zero.
void require_no_utf16(std::string_view beginning, const std::string& source);

[[nodiscard]] bool is_blank(std::string_view text);

/// True if `field` is `name`, which is in lower case. Case is ignored because spreadsheets
/// capitalise "step" at the beginning of a cell.
[[nodiscard]] bool is_name(std::string_view field, std::string_view name);

/// The whole number that `field` writes, or nothing. "8.0" is 8: pandas turns a column of whole
/// numbers with gaps into floating-point numbers.
[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view field);

/// The reason why `field` is not a whole number in a range above 0; to be called only if there is
/// one.
[[nodiscard]] std::string_view flaw_of(std::string_view field);

}  // namespace rubato::detail
