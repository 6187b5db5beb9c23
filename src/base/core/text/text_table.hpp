#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "text.hpp"

namespace rubato {

/// The alignment of the cells of a column.
enum class Column {
  left,
  right,
  /// Left-aligned and broken into lines as by wrapped(), or moved below the other cells if they
  /// leave too little room; for the last column only.
  wrapped,
};

/// A table of text with columns as wide as their widest cells, two blanks between columns and none
/// at the end of a line. A header is a row like any other.
///
/// If lines are too long for the terminal, the columns that do not fit move below, into a table of
/// the same rows that repeats the key columns. A column too wide even beside the keys alone is
/// broken into lines.
class TextTable {
 public:
  /// Every line is indented by `indent` blanks; the first `keys` columns identify a row.
  explicit TextTable(std::vector<Column> columns, std::size_t indent = 0, std::size_t keys = 1);

  /// Adds a row with one cell, in UTF-8, for each column.
  void add(std::vector<std::string> cells);

  /// The text of each row, for tables with something else between rows: one line, or several with a
  /// wrapped column, each ending with '\n'.
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
