#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::page {

// Pieces of charts as SVG, with the classes of web/parts.css. Lengths are in units of the drawing,
// which is kDrawingWidth wide; texts are escaped.

inline constexpr double kDrawingWidth = 460;
/// The right end of axes.
inline constexpr double kDrawingRight = kDrawingWidth - 14;

/// The least and the greatest of some values.
struct ValueRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value);
};

/// An axis: its values, its pixels, and the values that are written at it.
struct Scale {
  double low = 0;
  double high = 1;
  double from = 0;
  double to = 1;
  bool is_log = false;
  std::vector<double> ticks{};

  /// The pixel of a value. A logarithmic scale takes those beyond its ends to be there.
  [[nodiscard]] double operator()(double value) const;
};

/// A scale with about `count` ticks at multiples of 1, 2 or 5 times a power of ten; with `is_nice`
/// it reaches to the next ones. The pixels remain to be set.
[[nodiscard]] Scale linear_scale(ValueRange range, double count, bool is_nice,
                                 bool is_whole = false);
/// A scale with ticks at powers of ten; the values must be positive and span more than one of them.
[[nodiscard]] Scale log_scale(const ValueRange& range);

/// A number as axes have it: "12k", "0.05".
[[nodiscard]] std::string tick_text(double value);
/// The width of a text, as estimated.
[[nodiscard]] double drawn_width(std::string_view text);
/// Returns as much of the beginning of a text as has room in this width.
[[nodiscard]] std::string_view fitting(std::string_view text, double width);

[[nodiscard]] std::string text_at(double x, double y, std::string_view text,
                                  std::string_view attributes = {});
[[nodiscard]] std::string line_at(std::string_view looks, double x1, double y1, double x2,
                                  double y2);
[[nodiscard]] std::string dot_at(std::string_view looks, double x, double y, double radius);

/// The axis below a drawing at the height `at`, and its title at the bottom of the drawing.
[[nodiscard]] std::string axis_below(const Scale& x, double at, double bottom,
                                     std::string_view title);
/// The axis beside a drawing, with lines across it.
[[nodiscard]] std::string axis_beside(const Scale& y, double left);

/// Rows of samples and their names below a drawing.
class Legend {
 public:
  explicit Legend(double top) : height_(top) {}

  /// `sample` is SVG from 0 to 20 across, around the height 0.
  void add(const std::string& sample, std::string_view name);
  [[nodiscard]] const std::string& svg() const { return svg_; }
  /// The height of the drawing with the rows so far.
  [[nodiscard]] double height() const { return height_; }

 private:
  double height_;
  double x_ = 0;
  std::string svg_;
};

/// The element <svg> of a drawing; screen readers hear `words`.
[[nodiscard]] std::string svg_of(double height, std::string_view words, const std::string& drawing);

}  // namespace rubato::page
