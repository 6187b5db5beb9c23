#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/core/text/wrapped.hpp"

namespace rubato {

/// How the cells of a column stand in it.
enum class Column {
  left,
  right,
  /// At the left, each broken into lines as by wrapped(), or below the others where they leave too
  /// little room; for the last column only.
  wrapped,
};

/// Rows of text, in columns as wide as their widest cells, with two blanks between columns and none
/// at the end of a line. A header is a row like any other.
///
/// Where the lines would be too long for a terminal, the columns that do not fit move below, as a
/// table of the same rows: each has the first columns, which say what a row is of, again. What does
/// not fit beside them even alone is broken into lines within its column.
class TextTable {
 public:
  /// `indent` blanks stand before every line; the first `keys` columns say what a row is of.
  explicit TextTable(std::vector<Column> columns, std::size_t indent = 0, std::size_t keys = 1);

  /// Adds a row of as many cells, in UTF-8, as there are columns.
  void add(std::vector<std::string> cells);

  /// The text of each row, for tables that something else stands between: its line, or with a
  /// wrapped column its lines, each ending with '\n'.
  [[nodiscard]] std::vector<std::string> rows(LineWidth width = {}) const;

  /// All rows.
  [[nodiscard]] std::string text(LineWidth width = {}) const;

 private:
  [[nodiscard]] std::string tables(std::size_t room) const;
  [[nodiscard]] std::string row_of(const std::vector<std::string>& cells,
                                   const std::vector<std::size_t>& widths,
                                   const std::vector<std::size_t>& columns) const;
  void narrow_keys(std::vector<std::size_t>& widths, std::size_t room) const;

  std::vector<Column> columns_;
  std::size_t indent_;
  std::size_t keys_;
  std::vector<std::vector<std::string>> cells_;
};

}  // namespace rubato
