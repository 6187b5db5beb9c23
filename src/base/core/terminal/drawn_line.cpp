#include "drawn_line.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

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
  while (std::cmp_greater(joined().size(), std::max(columns, 0))) {
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
  const int room = columns - static_cast<int>(line.size()) - 1;
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

}  // namespace rubato
