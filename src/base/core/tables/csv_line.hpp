#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::detail {

/// A line of a CSV file cut into its fields.
struct CsvFields {
  /// Without the blanks (no-break spaces included) and the quotes around them; two quotes within
  /// quotes are one.
  std::vector<std::string_view> fields;
  /// Texts of the fields that had doubled quotes, which the line does not have as they are.
  std::vector<std::unique_ptr<const std::string>> unquoted;
  /// What is wrong with a quote; empty when nothing is.
  std::string_view flaw;
  /// Whether it is a quote that the line does not close.
  bool is_open = false;

  /// Whether there is nothing but separators.
  [[nodiscard]] bool empty() const;
  /// Takes away empty fields at the end, as long as there are more than `columns`.
  void drop_empty_beyond(std::size_t columns);
};

/// Cuts `line` at `separator`, which may stand within quotes. Takes `fields` for its memory.
void split_csv(std::string_view line, char separator, CsvFields& fields);

}  // namespace rubato::detail
