#include "core/text_table.hpp"

#include <algorithm>
#include <utility>

#include "core/check.hpp"
#include "core/wrapped.hpp"

namespace rubato {

namespace {

constexpr std::size_t kGap = 2;

std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& rows,
                                   std::size_t columns) {
  std::vector<std::size_t> widths(columns);
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t c = 0; c < columns; ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  return widths;
}

std::string blanks(std::size_t count) {
  return std::string(count, ' ');
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns, std::size_t indent)
    : columns_(std::move(columns)), indent_(indent) {
  const auto wrapped = std::find(columns_.begin(), columns_.end(), Column::wrapped);
  RUBATO_CHECK(wrapped == columns_.end() || wrapped + 1 == columns_.end(),
               "only the last column is wrapped");
}

void TextTable::add(std::vector<std::string> cells) {
  RUBATO_CHECK(cells.size() == columns_.size(), "a row has a cell for each column");
  cells_.push_back(std::move(cells));
}

std::vector<std::string> TextTable::rows() const {
  const std::vector<std::size_t> widths = widths_of(cells_, columns_.size());
  std::vector<std::string> rows;
  for (const std::vector<std::string>& cells : cells_) {
    std::string line = blanks(indent_);
    std::size_t begin = indent_;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string padding = blanks(widths[c] - width_of(cells[c]));
      switch (columns_[c]) {
        case Column::left:
          line += cells[c] + padding;
          break;
        case Column::right:
          line += padding + cells[c];
          break;
        case Column::wrapped:
          line += wrapped(cells[c], begin);
          break;
      }
      line += blanks(kGap);
      begin += widths[c] + kGap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    rows.push_back(line + '\n');
  }
  return rows;
}

std::string TextTable::text() const {
  std::string text;
  for (const std::string& row : rows()) text += row;
  return text;
}

}  // namespace rubato
