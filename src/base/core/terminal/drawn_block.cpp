#include "drawn_block.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "paint.hpp"

namespace rubato {

namespace {

// Terminals that know them show what is between them at once; others pass over them.
constexpr std::string_view kBegin = "\x1b[?2026h";
constexpr std::string_view kEnd = "\x1b[?2026l";
constexpr std::string_view kClearToEndOfLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

}  // namespace

std::string DrawnBlock::to_top(int columns) const {
  const auto width = static_cast<std::size_t>(std::max(columns, 1));
  std::size_t rows = 0;
  for (const std::string& line : lines_) {
    rows += std::max<std::size_t>(1, (painted_width(line) + width - 1) / width);
  }
  return rows == 0 ? "\r" : fmt::format("\r\x1b[{}A", rows);
}

void DrawnBlock::draw(std::vector<std::string> lines, int columns) {
  std::string text(kBegin);
  text += to_top(columns);
  for (const std::string& line : lines) text.append(line).append(kClearToEndOfLine).append("\n");
  text.append(kClearBelow).append(kEnd);
  lines_ = std::move(lines);
  write_(text);
}

void DrawnBlock::clear(int columns) {
  if (!drawn()) return;
  write_(to_top(columns).append(kClearBelow));
  lines_.clear();
}

}  // namespace rubato
