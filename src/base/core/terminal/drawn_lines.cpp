#include "drawn_lines.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "base/core/text/text.hpp"
#include "terminal.hpp"

namespace rubato {

namespace {

// Moves to the beginning of the line and erases all of it.
constexpr std::string_view kClear = "\r\x1b[2K";

}  // namespace

std::string fitting_line(std::vector<LineField> fields, int columns) {
  const auto joined = [&] {
    std::string line;
    for (const LineField& field : fields) line += (line.empty() ? "" : "  ") + field.text;
    return line;
  };
  const auto worth_less = [](const LineField& a, const LineField& b) { return a.worth < b.worth; };
  while (std::cmp_greater(width_of(joined()), std::max(columns, 0))) {
    fields.erase(std::min_element(fields.begin(), fields.end(), worth_less));
  }
  return joined();
}

std::string progress_bar(double done, int width, bool utf8) {
  const double cells = std::clamp(done, 0.0, 1.0) * width;
  const int full = static_cast<int>(cells);
  std::string bar;
  if (!utf8) {
    bar.append(static_cast<std::size_t>(full), '#');
    bar.append(static_cast<std::size_t>(width - full), '.');
    return bar;
  }
  constexpr std::array<std::string_view, 8> kEighths{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  for (int i = 0; i < full; ++i) bar += "█";
  if (full < width) {
    bar += kEighths.at(static_cast<std::size_t>((cells - full) * 8));
    bar.append(static_cast<std::size_t>(width - full - 1), ' ');
  }
  return bar;
}

std::string line_with_bar(std::vector<LineField> fields, int columns, double done, int narrowest) {
  constexpr int kWidest = 30;
  const std::string first = fields.front().text;
  std::string line = fitting_line(std::move(fields), columns);
  const int room = columns - static_cast<int>(width_of(line)) - 1;
  if (room < narrowest || !line.starts_with(first)) return line;
  line.insert(first.size(), progress_bar(done, std::min(room, kWidest), speaks_utf8()));
  line.insert(first.size(), 1, ' ');
  return line;
}

int drawable_columns(int descriptor) {
  constexpr std::size_t kUsual = 80;
  return static_cast<int>(terminal_columns(descriptor).value_or(kUsual)) - 1;
}

void DrawnLine::draw(std::string_view text) {
  write_(std::string(kClear).append(text));
  drawn_ = true;
}

void DrawnLine::clear() {
  if (!drawn_) return;
  write_(kClear);
  drawn_ = false;
}

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
