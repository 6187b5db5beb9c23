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
