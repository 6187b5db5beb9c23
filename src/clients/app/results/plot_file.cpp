#include "plot_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cairo-svg.h>
#include <cairo.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

// Lengths are in units of SVG. A PNG has kPngScale pixels for each, which looks sharp on dense
// screens.
constexpr double kWidth = 900;
constexpr double kLeastHeight = 520;
constexpr int kPngScale = 2;
constexpr double kFontSize = 14;
constexpr double kMargin = 16;
// The gap between the frame and the text beside it.
constexpr double kGapBeside = 8;
constexpr double kSampleWidth = 24;
constexpr double kLineHeight = 20;
// The opacity of bands, and of the points behind their mean.
constexpr double kPale = 0.25;
// The number of parts that a long curve is divided into; the lowest and highest point of each is
// drawn.
constexpr std::size_t kParts = 1000;

// Splits a text in UTF-8 into characters.
std::vector<std::string> letters_of(std::string_view text) {
  std::vector<std::string> letters;
  for (const char byte : text) {
    const bool goes_on = (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
    if (!goes_on || letters.empty()) letters.emplace_back();
    letters.back() += byte;
  }
  return letters;
}

struct Colour {
  double red;
  double green;
  double blue;
};
constexpr Colour kInk{0.15, 0.17, 0.2};
constexpr Colour kGrid{0.88, 0.89, 0.91};
// The palette of Okabe and Ito, which colour-blind people can distinguish.
constexpr std::array<Colour, 7> kCurves{{{0, 0.447, 0.698},
                                         {0.902, 0.624, 0},
                                         {0, 0.62, 0.451},
                                         {0.835, 0.369, 0},
                                         {0.8, 0.475, 0.655},
                                         {0.337, 0.706, 0.914},
                                         {0, 0, 0}}};

// The height of the picture, which grows with the lines of the legend.
double height_of(const Plot& plot) {
  const double legend = plot.curves.size() < 2 ? 0 : static_cast<double>(plot.curves.size());
  return std::max(kLeastHeight, 2 * kMargin + kLineHeight * (legend + 1));
}

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

cairo_status_t append(void* text, const unsigned char* bytes, unsigned int count) {
  static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), count);
  return CAIRO_STATUS_SUCCESS;
}

// Draws a plot onto any surface of cairo.
class PicturePainter {
 public:
  PicturePainter(const Plot& plot, cairo_t* context)
      : plot_(plot), to_(context), up_(axis_up(plot, 7)), across_(axis_across(plot, 8)) {
    cairo_select_font_face(to_, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(to_, kFontSize);
    for (const double tick : up_.ticks) {
      left_ = std::max(left_, 2 * kMargin + kLineHeight + width_of_text(up_.text_of(tick)));
    }
    if (plot.curves.size() < 2) return;
    double widest = 0;
    for (const Plot::Curve& curve : plot.curves) {
      widest = std::max(widest, width_of_text(curve.name));
    }
    right_ -= std::min(widest + kSampleWidth + 2 * kMargin, kWidth / 2);
  }

  void draw() {
    set(Colour{1, 1, 1});
    cairo_paint(to_);
    draw_axes();
    for (std::size_t i = 0; i < plot_.curves.size(); ++i) draw_band(i);
    for (std::size_t i = 0; i < plot_.curves.size(); ++i) draw_curve(i);
    if (plot_.curves.size() < 2) return;
    for (std::size_t i = 0; i < plot_.curves.size(); ++i) draw_legend(i);
  }

 private:
  void set(const Colour& colour) {
    cairo_set_source_rgb(to_, colour.red, colour.green, colour.blue);
  }
  [[nodiscard]] double width_of_text(const std::string& text) const {
    cairo_text_extents_t extents{};
    cairo_text_extents(to_, text.c_str(), &extents);
    return extents.x_advance;
  }
  // Returns the text or, if it is too wide, as much of its beginning and end as fits.
  [[nodiscard]] std::string fitted_text(const std::string& text, double room) const {
    if (width_of_text(text) <= room) return text;
    const std::vector<std::string> letters = letters_of(text);
    std::string shown;
    for (std::size_t kept = letters.size(); kept-- > 2;) {
      const auto head = letters.begin() + static_cast<std::ptrdiff_t>((kept + 1) / 2);
      const auto tail = letters.end() - static_cast<std::ptrdiff_t>(kept / 2);
      shown = fmt::format("{}…{}", fmt::join(letters.begin(), head, ""),
                          fmt::join(tail, letters.end(), ""));
      if (width_of_text(shown) <= room) break;
    }
    return shown;
  }
  // Writes a text with `share` of its width to the left of `x`.
  void write(const std::string& text, double x, double y, double share) {
    cairo_move_to(to_, x - share * width_of_text(text), y);
    cairo_show_text(to_, text.c_str());
  }
  void stroke_line(double x0, double y0, double x1, double y1) {
    cairo_move_to(to_, x0, y0);
    cairo_line_to(to_, x1, y1);
    cairo_stroke(to_);
  }
  [[nodiscard]] double x_of(double value) const {
    return left_ + across_.place_of(value) * (right_ - left_);
  }
  [[nodiscard]] double y_of(double value) const {
    return bottom_ - up_.place_of(value) * (bottom_ - top_);
  }

  void draw_axes();
  void draw_band(std::size_t index);
  void draw_curve(std::size_t index);
  void draw_points(std::span<const PlotPoint> points);
  void draw_legend(std::size_t index);
  // Sets the colour of a curve; curves beyond the last colour differ by their dashes.
  void set_pen(std::size_t index);

  const Plot& plot_;
  cairo_t* to_;
  PlotAxis up_;
  PlotAxis across_;
  double left_ = 0;
  double right_ = kWidth - 2 * kMargin;
  double height_ = height_of(plot_);
  double top_ = kMargin + kLineHeight / 2;
  double bottom_ = height_ - kMargin - 2.5 * kLineHeight;
};

void PicturePainter::draw_axes() {
  constexpr double kThin = 1;
  constexpr double kToMiddle = kFontSize * 0.35;
  cairo_set_line_width(to_, kThin);
  for (const double tick : up_.ticks) {
    set(kGrid);
    stroke_line(left_, y_of(tick), right_, y_of(tick));
    set(kInk);
    write(up_.text_of(tick), left_ - kGapBeside, y_of(tick) + kToMiddle, 1);
  }
  for (const double tick : across_.ticks) {
    set(kGrid);
    stroke_line(x_of(tick), top_, x_of(tick), bottom_);
    set(kInk);
    write(across_.text_of(tick), x_of(tick), bottom_ + kLineHeight, 0.5);
  }
  stroke_line(left_, bottom_, right_, bottom_);
  stroke_line(left_, top_, left_, bottom_);
  write(plot_.across, (left_ + right_) / 2, height_ - kMargin, 0.5);
  cairo_save(to_);
  cairo_translate(to_, kMargin + kFontSize / 2, (top_ + bottom_) / 2);
  cairo_rotate(to_, -std::numbers::pi / 2);
  write(plot_.up, 0, kToMiddle, 0.5);
  cairo_restore(to_);
}

void PicturePainter::set_pen(std::size_t index) {
  constexpr double kThick = 1.8;
  set(kCurves.at(index % kCurves.size()));
  cairo_set_line_width(to_, kThick);
  const std::size_t round = index / kCurves.size();
  const double dash = 2 + 4 * static_cast<double>(round);
  cairo_set_dash(to_, &dash, round == 0 ? 0 : 1, 0);
}

// Draws the area between the least and the greatest of the values that the curve is the mean of.
void PicturePainter::draw_band(std::size_t index) {
  const auto& [name, points, band] = plot_.curves[index];
  if (band.empty()) return;
  const Colour& colour = kCurves.at(index % kCurves.size());
  cairo_set_source_rgba(to_, colour.red, colour.green, colour.blue, kPale);
  // Showing text leaves a current point, from which a line would be drawn.
  cairo_new_path(to_);
  for (std::size_t i = 0; i < band.size(); ++i) {
    cairo_line_to(to_, x_of(points[i].x), y_of(band[i].most));
  }
  for (std::size_t i = band.size(); i-- > 0;) {
    cairo_line_to(to_, x_of(points[i].x), y_of(band[i].least));
  }
  cairo_close_path(to_);
  cairo_fill(to_);
}

void PicturePainter::draw_curve(std::size_t index) {
  constexpr double kThin = 1;
  const std::vector<PlotPoint>& points = plot_.curves[index].points;
  const std::vector<PlotPoint> means = averaged(points, kParts);
  set_pen(index);
  cairo_set_line_join(to_, CAIRO_LINE_JOIN_ROUND);
  cairo_set_line_cap(to_, CAIRO_LINE_CAP_ROUND);
  if (means.empty()) {
    draw_points(points);
    return;
  }
  // Many points are drawn as a pale curve behind their mean.
  const Colour& colour = kCurves.at(index % kCurves.size());
  cairo_set_source_rgba(to_, colour.red, colour.green, colour.blue, kPale);
  cairo_set_line_width(to_, kThin);
  draw_points(decimated(points, kParts));
  set_pen(index);
  draw_points(means);
}

// Draws a line through the points up to each gap; an isolated point is drawn as a dot.
void PicturePainter::draw_points(std::span<const PlotPoint> points) {
  constexpr double kRadius = 4;
  const auto is_finite = [&](std::size_t i) {
    return i < points.size() && std::isfinite(points[i].y);
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!is_finite(i)) continue;
    const bool goes_on = i > 0 && is_finite(i - 1);
    const double x = x_of(points[i].x);
    const double y = y_of(points[i].y);
    if (goes_on) {
      cairo_line_to(to_, x, y);
    } else if (is_finite(i + 1)) {
      cairo_move_to(to_, x, y);
    } else {
      cairo_stroke(to_);
      cairo_arc(to_, x, y, kRadius, 0, 2 * std::numbers::pi);
      cairo_fill(to_);
    }
  }
  cairo_stroke(to_);
}

void PicturePainter::draw_legend(std::size_t index) {
  const double y = top_ + kLineHeight * (static_cast<double>(index) + 0.5);
  const double x = right_ + kMargin;
  set_pen(index);
  stroke_line(x, y, x + kSampleWidth - kGapBeside, y);
  cairo_set_dash(to_, nullptr, 0, 0);
  set(kInk);
  write(fitted_text(plot_.curves[index].name, kWidth - x - kSampleWidth - kMargin / 2),
        x + kSampleWidth, y + kFontSize * 0.35, 0);
}

void require_drawn(cairo_status_t status, const path& file) {
  if (status == CAIRO_STATUS_SUCCESS) return;
  throw OutputError(
      fmt::format("{}: cannot draw: {}", file.string(), cairo_status_to_string(status)));
}

void draw_on(cairo_surface_t* surface, double scale, const Plot& plot, const path& file) {
  const Context context(cairo_create(surface), cairo_destroy);
  cairo_scale(context.get(), scale, scale);
  PicturePainter(plot, context.get()).draw();
  require_drawn(cairo_status(context.get()), file);
}

}  // namespace

void require_picture_file(const path& file) {
  if (file.extension() == ".svg" || file.extension() == ".png") return;
  throw Error(fmt::format("'{}' is not a picture; accepted: FILE.svg or FILE.png",
                          short_line(file.string())));
}

void write_picture(const Plot& plot, const path& file) {
  std::string bytes;
  if (file.extension() == ".svg") {
    const Surface surface(
        cairo_svg_surface_create_for_stream(append, &bytes, kWidth, height_of(plot)),
        cairo_surface_destroy);
    draw_on(surface.get(), 1, plot, file);
    cairo_surface_finish(surface.get());
    require_drawn(cairo_surface_status(surface.get()), file);
  } else {
    const Surface surface(
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(kWidth) * kPngScale,
                                   static_cast<int>(height_of(plot)) * kPngScale),
        cairo_surface_destroy);
    draw_on(surface.get(), kPngScale, plot, file);
    require_drawn(cairo_surface_write_to_png_stream(surface.get(), append, &bytes), file);
  }
  write_file(file, bytes);
}

}  // namespace rubato::app
