#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/core/terminal/charts.hpp"
#include "base/core/terminal/terminal.hpp"
#include "base/core/text/text.hpp"
#include "plot.hpp"

namespace rubato {

namespace {

constexpr int kWidestPlot = 120;
constexpr int kNarrowestPlot = 24;
// Rows and columns per number on an axis.
constexpr int kRowsOfTick = 3;
constexpr int kColumnsOfTick = 12;

constexpr std::array<Ink, 6> kInks{Ink::cyan,  Ink::yellow, Ink::magenta,
                                   Ink::green, Ink::blue,   Ink::red};
// Characters that distinguish curves if colours do not.
constexpr std::string_view kMarks = "*+ox#@%&=^~vwszkniucab";

Pen pen_of(std::size_t curve) {
  return {kInks.at(curve % kInks.size()), kMarks[curve % kMarks.size()]};
}

// The characters of the frame.
struct Frame {
  std::string_view side;
  std::string_view tick_beside;
  std::string_view corner;
  std::string_view floor;
  std::string_view tick_below;
};
constexpr Frame kAsciiFrame{"|", "+", "+", "-", "+"};
constexpr Frame kUtf8Frame{"│", "┤", "└", "─", "┬"};

// The plot reduced to what cells can show: curves with many points as means, because a cloud of
// points would hide their course, and means without their bands.
Plot for_cells(const Plot& plot, const ViewStyle& style) {
  const auto columns =
      static_cast<std::size_t>(std::clamp(style.columns, kNarrowestPlot, kWidestPlot));
  Plot shown = plot;
  for (Plot::Curve& curve : shown.curves) {
    std::vector<PlotPoint> means = averaged(curve.points, 2 * columns);
    if (!means.empty()) curve.points = std::move(means);
    curve.band.clear();
  }
  return shown;
}

// Draws the lines of a plot.
class PlotPainter {
 public:
  PlotPainter(const Plot& plot, const ViewStyle& style, int rows)
      : plot_(for_cells(plot, style)),
        style_(style),
        rows_(std::max(rows, 2)),
        up_(axis_up(plot_, std::max(2, rows / kRowsOfTick))) {
    for (const double tick : up_.ticks) margin_ = std::max(margin_, up_.text_of(tick).size());
    const int columns = std::clamp(style.columns, kNarrowestPlot, kWidestPlot);
    columns_ = std::max(4, columns - static_cast<int>(margin_) - 2);
    across_ = axis_across(plot_, std::max(2, columns_ / kColumnsOfTick));
  }

  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  [[nodiscard]] Canvas drawn() const;
  void draw_mark(Canvas& canvas, double x, double y, const Pen& pen) const;
  [[nodiscard]] std::string floor() const;
  [[nodiscard]] std::string numbers_below() const;
  [[nodiscard]] std::string legend(std::size_t curve) const;
  [[nodiscard]] Canvas::Cells cells() const {
    const bool apart =
        plot_.curves.size() < 2 || (style_.colours && plot_.curves.size() <= kInks.size());
    return style_.utf8 && apart ? Canvas::Cells::braille : Canvas::Cells::marks;
  }
  [[nodiscard]] const Frame& frame() const { return style_.utf8 ? kUtf8Frame : kAsciiFrame; }
  [[nodiscard]] int column_of(double x) const {
    return static_cast<int>(std::lround(across_.place_of(x) * (columns_ - 1)));
  }

  Plot plot_;
  const ViewStyle& style_;
  int rows_;
  PlotAxis up_;
  PlotAxis across_;
  std::size_t margin_ = 0;
  int columns_ = 0;
};

Canvas PlotPainter::drawn() const {
  Canvas canvas(columns_, rows_, cells());
  for (std::size_t i = 0; i < plot_.curves.size(); ++i) {
    const std::vector<PlotPoint>& points = plot_.curves[i].points;
    for (std::size_t j = 0; j < points.size(); ++j) {
      if (std::isnan(points[j].y)) continue;
      const bool goes_on = j > 0 && !std::isnan(points[j - 1].y);
      const bool has_next = j + 1 < points.size() && !std::isnan(points[j + 1].y);
      const PlotPoint& from = goes_on ? points[j - 1] : points[j];
      const double x = across_.place_of(points[j].x);
      const double y = up_.place_of(points[j].y);
      canvas.line(across_.place_of(from.x), up_.place_of(from.y), x, y, pen_of(i));
      if (!goes_on && !has_next) draw_mark(canvas, x, y, pen_of(i));
    }
  }
  return canvas;
}

// Draws an isolated point as a cross, because a single dot would hardly be visible.
void PlotPainter::draw_mark(Canvas& canvas, double x, double y, const Pen& pen) const {
  if (cells() == Canvas::Cells::marks) return;
  const double beside = 1.0 / columns_;
  const double above = 0.5 / rows_;
  canvas.line(x - beside, y, x + beside, y, pen);
  canvas.line(x, y - above, x, y + above, pen);
}

std::string PlotPainter::floor() const {
  std::vector<bool> has_tick(static_cast<std::size_t>(columns_));
  for (const double tick : across_.ticks) {
    has_tick[static_cast<std::size_t>(std::clamp(column_of(tick), 0, columns_ - 1))] = true;
  }
  std::string text(frame().corner);
  for (const bool tick : has_tick) text += tick ? frame().tick_below : frame().floor;
  return text;
}

// Numbers below their ticks, except those without room.
std::string PlotPainter::numbers_below() const {
  std::string text(margin_ + 1, ' ');
  for (const double tick : across_.ticks) {
    const std::string number = across_.text_of(tick);
    const std::size_t middle = margin_ + 1 + static_cast<std::size_t>(column_of(tick));
    const std::size_t end = margin_ + 1 + static_cast<std::size_t>(columns_);
    const std::size_t begin =
        std::min(middle - std::min(middle, number.size() / 2), end - std::min(end, number.size()));
    if (tick != 0 && begin < text.size() + 1) continue;
    text.resize(std::max(text.size(), begin), ' ');
    text.replace(begin, text.size() - begin, number);
  }
  return text;
}

std::string PlotPainter::legend(std::size_t curve) const {
  const Pen pen = pen_of(curve);
  const bool dots = cells() == Canvas::Cells::braille;
  const std::string sample = dots ? std::string("━━") : std::string(2, pen.mark);
  return fmt::format("{}{} {}", std::string(margin_ + 1, ' '),
                     painted(sample, pen.ink, style_.colours), plot_.curves[curve].name);
}

std::vector<std::string> PlotPainter::lines() const {
  const Canvas canvas = drawn();
  std::vector<std::string> beside(static_cast<std::size_t>(rows_));
  for (const double tick : up_.ticks) {
    const auto row = std::lround((1 - up_.place_of(tick)) * (rows_ - 1));
    beside[static_cast<std::size_t>(std::clamp<long>(row, 0, rows_ - 1))] = up_.text_of(tick);
  }
  std::vector<std::string> lines{plot_.up};
  for (int row = 0; row < rows_; ++row) {
    const std::string& number = beside[static_cast<std::size_t>(row)];
    lines.push_back(fmt::format("{:>{}}{}{}", number, margin_,
                                number.empty() ? frame().side : frame().tick_beside,
                                canvas.row(row, style_.colours)));
  }
  lines.push_back(std::string(margin_, ' ') + floor());
  lines.push_back(numbers_below());
  const std::size_t width = margin_ + 1 + static_cast<std::size_t>(columns_);
  lines.push_back(
      std::string(width - std::min(width, width_of(plot_.across)), ' ').append(plot_.across));
  if (plot_.curves.size() < 2) return lines;
  for (std::size_t i = 0; i < plot_.curves.size(); ++i) lines.push_back(legend(i));
  return lines;
}

}  // namespace

std::vector<std::string> plot_lines(const Plot& plot, const ViewStyle& style, int rows) {
  return PlotPainter(plot, style, rows).lines();
}

}  // namespace rubato
