// A table is laid out when it is printed, with widths measured over all rows that it has then.
// rows() puts each row on one line, with the prose of a wrapped last column beside it or, if less
// than kLeastProse columns are left, below it. If the lines of a table without prose are wider than
// the terminal, text() uses tables() instead: it narrows the keys to half of the width as far as
// their words allow, and then fills one table after the other with as many further columns as fit
// beside them.

#include "text_table.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/core/check.hpp"

namespace rubato {

namespace {

constexpr std::size_t kGap = 2;
// Prose in fewer columns than this moves below its row.
constexpr std::size_t kLeastProse = 24;
// The indentation of such prose.
constexpr std::size_t kBelow = 4;

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

std::string without_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// `cell` in its column.
std::string padded(std::string_view cell, std::size_t width, Column column) {
  if (column != Column::right) return padded_to(cell, width);
  return blanks(width - std::min(width, width_of(cell))).append(cell);
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns, std::size_t indent, std::size_t keys)
    : columns_(std::move(columns)), indent_(indent), keys_(keys) {
  const auto wrapped = std::find(columns_.begin(), columns_.end(), Column::wrapped);
  RUBATO_CHECK(wrapped == columns_.end() || wrapped + 1 == columns_.end(),
               "only the last column is wrapped");
  RUBATO_CHECK(keys_ < columns_.size(), "a table has a column beside its keys");
}

void TextTable::add(std::vector<std::string> cells) {
  RUBATO_CHECK(cells.size() == columns_.size(), "a row has a cell for each column");
  cells_.push_back(std::move(cells));
}

std::vector<std::string> TextTable::rows(LineWidth width) const {
  const std::vector<std::size_t> widths = widths_of(cells_, columns_.size());
  const bool has_prose = columns_.back() == Column::wrapped;
  const std::size_t plain = columns_.size() - (has_prose ? 1 : 0);
  const std::size_t begin = std::accumulate(
      widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(plain), indent_ + plain * kGap);
  const bool below =
      has_prose && width.columns != LineWidth::kUnlimited && begin + kLeastProse > width.prose();
  std::vector<std::string> rows;
  for (const std::vector<std::string>& cells : cells_) {
    std::string line = blanks(indent_);
    for (std::size_t c = 0; c < plain; ++c) {
      line += padded(cells[c], widths[c], columns_[c]) + blanks(kGap);
    }
    if (has_prose && !below) line += wrapped(cells.back(), begin, width);
    line = without_end(std::move(line));
    if (below) line = fitted(line, width);
    if (below && !cells.back().empty()) {
      const std::size_t indent = indent_ + kBelow;
      if (!line.empty()) line += '\n';
      line.append(indent, ' ');
      line += wrapped(cells.back(), indent, width);
    }
    rows.push_back(line + '\n');
  }
  return rows;
}

std::string TextTable::text(LineWidth width) const {
  const std::vector<std::size_t> widths = widths_of(cells_, columns_.size());
  const std::size_t whole =
      std::accumulate(widths.begin(), widths.end(), indent_ + (columns_.size() - 1) * kGap);
  if (columns_.back() != Column::wrapped && whole > width.columns) return tables(width.columns);
  std::string text;
  for (const std::string& row : rows(width)) text += row;
  return text;
}

// Narrows the keys to half of the room, as far as their longest words allow.
void TextTable::narrow_keys(std::vector<std::size_t>& widths, std::size_t room) const {
  std::vector<std::size_t> least(keys_);
  for (const std::vector<std::string>& cells : cells_) {
    for (std::size_t c = 0; c < keys_; ++c) least[c] = std::max(least[c], least_width_of(cells[c]));
  }
  std::size_t width = indent_;
  for (std::size_t c = 0; c < keys_; ++c) width += widths[c] + kGap;
  while (width > room / 2) {
    std::size_t widest = keys_;
    for (std::size_t c = 0; c < keys_; ++c) {
      if (widths[c] > least[c] && (widest == keys_ || widths[c] > widths[widest])) widest = c;
    }
    if (widest == keys_) return;
    --widths[widest];
    --width;
  }
}

std::string TextTable::tables(std::size_t room) const {
  std::vector<std::size_t> widths = widths_of(cells_, columns_.size());
  narrow_keys(widths, room);
  std::size_t begin = indent_;
  for (std::size_t c = 0; c < keys_; ++c) begin += widths[c] + kGap;
  // A column has at least one character, however narrow the terminal is.
  const std::size_t most = room > begin ? room - begin : 1;
  for (std::size_t c = keys_; c < widths.size(); ++c) widths[c] = std::min(widths[c], most);
  std::string text;
  for (std::size_t first = keys_; first < columns_.size();) {
    std::vector<std::size_t> columns(keys_);
    std::iota(columns.begin(), columns.end(), std::size_t{0});
    std::size_t width = begin;
    std::size_t next = first;
    while (next < columns_.size() && (next == first || width + widths[next] <= room)) {
      width += widths[next] + kGap;
      columns.push_back(next++);
    }
    if (first > keys_) text += '\n';
    for (const std::vector<std::string>& cells : cells_) text += row_of(cells, widths, columns);
    first = next;
  }
  return text;
}

std::string TextTable::row_of(const std::vector<std::string>& cells,
                              const std::vector<std::size_t>& widths,
                              const std::vector<std::size_t>& columns) const {
  std::vector<std::vector<std::string>> lines;
  std::size_t height = 1;
  for (const std::size_t c : columns) {
    lines.push_back(cell_lines(cells[c], widths[c]));
    height = std::max(height, lines.back().size());
  }
  std::string text;
  for (std::size_t l = 0; l < height; ++l) {
    std::string line = blanks(indent_);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::size_t c = columns[i];
      line +=
          padded(l < lines[i].size() ? std::string_view(lines[i][l]) : "", widths[c], columns_[c]) +
          blanks(kGap);
    }
    text += without_end(std::move(line)) + '\n';
  }
  return text;
}

}  // namespace rubato
