#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rubato {

/// How the cells of a column stand in it.
enum class Column {
  left,
  right,
  /// At the left, each broken into lines of at most 80 columns as by wrapped(); for the last column
  /// only.
  wrapped,
};

/// Rows of text, in columns as wide as their widest cells, with two blanks between columns and none
/// at the end of a line. A header is a row like any other.
class TextTable {
 public:
  /// `indent` blanks stand before every line.
  explicit TextTable(std::vector<Column> columns, std::size_t indent = 0);

  /// Adds a row of as many cells, in UTF-8, as there are columns.
  void add(std::vector<std::string> cells);

  /// The text of each row, for tables that something else stands between: its line, or with a
  /// wrapped column its lines, each ending with '\n'.
  [[nodiscard]] std::vector<std::string> rows() const;

  /// All rows.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::size_t indent_;
  std::vector<std::vector<std::string>> cells_;
};

}  // namespace rubato
