#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

/// Splits `line` at `separator`, which may also stand within quotes. Reuses the memory of `fields`.
void split_csv(std::string_view line, char separator, CsvFields& fields);

}  // namespace rubato::detail
