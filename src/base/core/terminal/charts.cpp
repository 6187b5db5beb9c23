#include "charts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

#include "drawn_lines.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kDotsAcross = 2;
constexpr std::int64_t kDotsUp = 4;

// Bits of a cell's dots in U+2800, by column and from the top.
constexpr std::array<std::array<std::uint8_t, kDotsUp>, kDotsAcross> kBits{
    {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};

// The character from U+2800 to U+28FF, in UTF-8.
std::string braille_of(std::uint8_t dots) {
  return {static_cast<char>(0xE2), static_cast<char>(0xA0 | (dots >> 6U)),
          static_cast<char>(0x80 | (dots & 0x3FU))};
}

}  // namespace

Canvas::Canvas(int columns, int rows, Cells cells)
    : columns_(std::max(columns, 1)),
      rows_(std::max(rows, 1)),
      cells_(cells),
      all_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_)) {}

void Canvas::line(double x0, double y0, double x1, double y1, const Pen& pen) {
  const auto across = static_cast<double>(kDotsAcross * columns_ - 1);
  const auto up = static_cast<double>(kDotsUp * rows_ - 1);
  // Ends are clamped, so that a line far outside takes no more steps than one across the canvas.
  const auto place = [](double share, double most) { return std::clamp(share, -1.0, 2.0) * most; };
  const double from_x = place(x0, across);
  const double from_y = place(y0, up);
  const double by_x = place(x1, across) - from_x;
  const double by_y = place(y1, up) - from_y;
  const auto steps =
      static_cast<std::int64_t>(std::ceil(std::max(std::fabs(by_x), std::fabs(by_y))));
  for (std::int64_t i = 0; i <= steps; ++i) {
    const double share = steps == 0 ? 0 : static_cast<double>(i) / static_cast<double>(steps);
    dot(std::llround(from_x + share * by_x), std::llround(up - from_y - share * by_y), pen);
  }
}

void Canvas::dot(std::int64_t x, std::int64_t y, const Pen& pen) {
  if (x < 0 || y < 0 || x >= kDotsAcross * columns_ || y >= kDotsUp * rows_) return;
  Cell& cell = all_[static_cast<std::size_t>(y / kDotsUp * columns_ + x / kDotsAcross)];
  cell.dots |=
      kBits.at(static_cast<std::size_t>(x % kDotsAcross)).at(static_cast<std::size_t>(y % kDotsUp));
  cell.pen = pen;
}

std::string Canvas::row(int index, bool colours) const {
  const Cell* const first =
      &all_[static_cast<std::size_t>(index) * static_cast<std::size_t>(columns_)];
  int end = columns_;
  while (end > 0 && first[end - 1].dots == 0) --end;
  std::string text;
  // A run of cells of one colour is painted at once.
  for (int begin = 0; begin < end;) {
    const Ink ink = first[begin].dots == 0 ? Ink::plain : first[begin].pen.ink;
    std::string part;
    for (; begin < end; ++begin) {
      const Cell& cell = first[begin];
      if ((cell.dots == 0 ? Ink::plain : cell.pen.ink) != ink) break;
      if (cell.dots == 0) {
        part += ' ';
      } else {
        part += cells_ == Cells::braille ? braille_of(cell.dots) : std::string(1, cell.pen.mark);
      }
    }
    text += painted(part, ink, colours);
  }
  return text;
}

namespace {

using Levels = std::array<std::string_view, 8>;
constexpr Levels kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr Levels kAscii{"_", ".", "-", "~", "=", "+", "*", "#"};

std::string repeated(std::string_view text, std::int64_t count) {
  std::string all;
  for (std::int64_t i = 0; i < count; ++i) all += text;
  return all;
}

// The number of `width` cells that stand for `part` of `most`; at least 1 unless one of them is 0.
std::int64_t cells_of(std::int64_t part, std::int64_t most, std::int64_t width) {
  if (part <= 0 || most <= 0 || width <= 0) return 0;
  const double share = static_cast<double>(part) / static_cast<double>(most);
  return std::clamp<std::int64_t>(std::llround(share * static_cast<double>(width)), 1, width);
}

}  // namespace

std::string sparkline(std::span<const double> values, bool utf8) {
  double least = std::numeric_limits<double>::infinity();
  double largest = -least;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    largest = std::max(largest, value);
  }
  const Levels& levels = utf8 ? kBlocks : kAscii;
  std::string line;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      line += ' ';
      continue;
    }
    const double height = largest > least ? (value - least) / (largest - least) : 0.4;
    line += levels.at(std::min<std::size_t>(static_cast<std::size_t>(height * 8), 7));
  }
  return line;
}

ThinBar thin_bar(double done, int width, bool utf8) {
  done = std::isfinite(done) ? std::clamp(done, 0.0, 1.0) : 0;
  if (!utf8) {
    const std::string bar = progress_bar(done, width, false);
    const std::size_t full = std::min(bar.find('.'), bar.size());
    return {.done = bar.substr(0, full), .left = bar.substr(full)};
  }
  const auto halves = static_cast<std::int64_t>(done * 2 * width);
  const std::int64_t full = halves / 2;
  const bool half = halves % 2 != 0;
  return {.done = repeated("━", full) + (half ? "╸" : ""),
          .left = repeated("─", width - full - (half ? 1 : 0))};
}

CoreCells core_cells(std::int64_t busy, std::int64_t cores, std::int64_t most, int width,
                     bool utf8) {
  most = std::max(most, cores);
  const std::int64_t all = std::min<std::int64_t>(most, std::max(width, 0));
  const std::int64_t there = cells_of(cores, most, all);
  std::int64_t work = std::min(cells_of(busy, most, all), there);
  if (busy < cores && work == there && work > 1) --work;
  return {.busy = repeated(utf8 ? "■" : "#", work),
          .idle = repeated(utf8 ? "□" : "o", there - work),
          .absent = repeated(utf8 ? "·" : ".", all - there)};
}

}  // namespace rubato
