#include "svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/core/text/text.hpp"
#include "html.hpp"

namespace rubato::page {

namespace {

// The width of most letters.
constexpr double kLetter = 6;

}  // namespace

void ValueRange::add(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

double Scale::operator()(double value) const {
  const double share = is_log ? std::log(std::clamp(value, low, high) / low) / std::log(high / low)
                              : (value - low) / (high - low);
  return from + (to - from) * share;
}

Scale linear_scale(ValueRange range, double count, bool is_nice, bool is_whole) {
  if (range.low == range.high) {
    const double around = range.low == 0 ? 1 : std::abs(range.low) / 10;
    range = {range.low - around, range.high + around};
  }
  const double wanted = (range.high - range.low) / count;
  const double power = std::pow(10, std::floor(std::log10(wanted)));
  const double rest = wanted / power;
  double step = power * (rest > 7 ? 10 : rest > 3.2 ? 5 : rest > 1.4 ? 2 : 1);
  if (is_whole) step = std::max(step, 1.0);
  Scale scale{.low = range.low, .high = range.high};
  if (is_nice) {
    scale.low = std::floor(range.low / step) * step;
    scale.high = std::ceil(range.high / step) * step;
  }
  // Ticks at the ends count although they are not exact.
  constexpr double kNear = 1e-9;
  const double first = std::ceil(scale.low / step - kNear);
  for (int i = 0; (first + i) * step <= scale.high + kNear * step; ++i) {
    scale.ticks.push_back((first + i) * step);
  }
  return scale;
}

Scale log_scale(const ValueRange& range) {
  constexpr double kMostTicks = 8;
  Scale scale{.low = range.low, .high = range.high, .is_log = true};
  const auto first = static_cast<int>(std::ceil(std::log10(range.low)));
  const auto last = static_cast<int>(std::floor(std::log10(range.high)));
  const auto every = static_cast<int>(std::ceil((last - first + 1) / kMostTicks));
  for (int i = first; i <= last; i += every) scale.ticks.push_back(std::pow(10, i));
  return scale;
}

std::string tick_text(double value) {
  constexpr std::array<std::pair<double, const char*>, 3> kUnits{
      {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  constexpr double kLarge = 1e4;
  for (const auto& [unit, letter] : kUnits) {
    if (std::abs(value) >= std::max(kLarge, unit)) {
      return fmt::format("{:.4g}{}", value / unit, letter);
    }
  }
  return fmt::format("{:.6g}", value);
}

double drawn_width(std::string_view text) {
  return kLetter * static_cast<double>(width_of(text));
}

std::string_view fitting(std::string_view text, double width) {
  return first_columns(text, static_cast<std::size_t>(std::max(width, 0.0) / kLetter));
}

std::string text_at(double x, double y, std::string_view text, std::string_view attributes) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>", x, y, attributes,
                     escaped(text));
}

std::string line_at(std::string_view looks, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                     looks, x1, y1, x2, y2);
}

std::string dot_at(std::string_view looks, double x, double y, double radius) {
  return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", looks, x, y,
                     radius);
}

std::string axis_below(const Scale& x, double at, double bottom, std::string_view title) {
  std::string svg = "<g class=\"axis\">" + line_at("tick", x.from, at, x.to, at);
  for (const double tick : x.ticks) {
    const std::string text = tick_text(tick);
    const double half = drawn_width(text) / 2;
    svg += line_at("tick", x(tick), at, x(tick), at + 4);
    svg += text_at(std::clamp(x(tick), half, kDrawingWidth - half), at + 15, text,
                   " text-anchor=\"middle\"");
  }
  return svg + "</g>" + text_at(kDrawingRight, bottom - 3, title, " text-anchor=\"end\"");
}

std::string axis_beside(const Scale& y, double left) {
  std::string svg = "<g class=\"axis\">";
  for (const double tick : y.ticks) {
    svg += line_at("tick", left, y(tick), kDrawingRight, y(tick));
    svg += text_at(left - 4, y(tick) + 4, tick_text(tick), " text-anchor=\"end\"");
  }
  return svg + "</g>";
}

void Legend::add(const std::string& sample, std::string_view name) {
  constexpr double kSample = 26;
  constexpr double kGap = 16;
  constexpr double kRow = 16;
  const double needed = kSample + drawn_width(name) + kGap;
  if (x_ == 0 || x_ + needed - kGap > kDrawingWidth) {
    x_ = 4;
    height_ += kRow;
  }
  svg_ += fmt::format("<g transform=\"translate({:.0f},{:.0f})\">{}{}</g>", x_, height_ - 6, sample,
                      text_at(kSample, 4, name, " class=\"key\""));
  x_ += needed;
}

std::string svg_of(double height, std::string_view words, const std::string& drawing) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">{}</svg>",
                     kDrawingWidth, height, escaped(words), drawing);
}

}  // namespace rubato::page
