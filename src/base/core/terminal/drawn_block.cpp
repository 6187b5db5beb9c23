#include "drawn_block.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "paint.hpp"

namespace rubato {

namespace {

// Synchronized output: terminals that know these marks show everything between them at once; others
// ignore them.
constexpr std::string_view kBegin = "\x1b[?2026h";
constexpr std::string_view kEnd = "\x1b[?2026l";
constexpr std::string_view kClearToEndOfLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

// The cursor stops at the top of the terminal, however many rows it should move up.
std::string up_by(std::size_t rows) {
  return rows == 0 ? "\r" : fmt::format("\r\x1b[{}A", rows);
}

}  // namespace

std::size_t DrawnBlock::rows_of_lines(int columns) const {
  const auto width = static_cast<std::size_t>(std::max(columns, 1));
  std::size_t rows = 0;
  for (const std::string& line : lines_) {
    rows += std::max<std::size_t>(1, (painted_width(line) + width - 1) / width);
  }
  return rows;
}

void DrawnBlock::draw(std::vector<std::string> lines, int columns, std::size_t rows) {
  const std::size_t before = rows_of_lines(columns) + rows_above_;
  // The cursor occupies a row below the lines.
  const std::size_t reached = std::max<std::size_t>(rows, 1) - 1;
  rows_above_ = before - std::min(before, reached);
  std::string text(kBegin);
  text += up_by(before);
  for (const std::string& line : lines) text.append(line).append(kClearToEndOfLine).append("\n");
  text.append(kClearBelow).append(kEnd);
  lines_ = std::move(lines);
  write_(text);
}

void DrawnBlock::clear(int columns) {
  if (!drawn()) return;
  write_(up_by(rows_of_lines(columns)).append(kClearBelow));
  // The next output may scroll the rows above back in, which must not be overwritten.
  leave();
}

}  // namespace rubato
