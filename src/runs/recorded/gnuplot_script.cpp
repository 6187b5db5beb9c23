#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/core/text/text.hpp"
#include "plot.hpp"

namespace rubato {

namespace {

// A text as gnuplot reads it between single quotes, with '?' for control characters: a line end
// would end the quotation, and the next line of a hostile folder's name could be a command.
std::string gnuplot_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : printable(text)) {
    quoted.append(letter == '\'' ? 2 : 1, letter == '\n' ? '?' : letter);
  }
  return quoted + "'";
}

std::size_t lines_of_legend(const Plot& plot) {
  return plot.curves.size() < 2 ? 0 : plot.curves.size();
}

std::size_t longest_name(const Plot& plot) {
  std::size_t longest = 0;
  if (lines_of_legend(plot) == 0) return longest;
  for (const Plot::Curve& curve : plot.curves) longest = std::max(longest, width_of(curve.name));
  return longest;
}

// The terminal, with room for the legend: beside a picture, below the characters.
std::string terminal_of(const Plot& plot, const PlotForm& form) {
  const std::size_t width = std::max<std::size_t>(900, 640 + 9 * longest_name(plot));
  const std::size_t height = std::max<std::size_t>(520, 90 + 20 * lines_of_legend(plot));
  switch (form.type) {
    case PlotForm::Type::svg:
      return fmt::format("svg size {},{} font 'sans-serif,14' linewidth 1.5 background 'white'",
                         width, height);
    case PlotForm::Type::png:
      return fmt::format("pngcairo size {},{} font 'sans,11' fontscale 2 linewidth 3", 2 * width,
                         2 * height);
    case PlotForm::Type::pdf:
      return fmt::format("pdfcairo size {:.2f}in,{:.2f}in font 'sans,20'",
                         static_cast<double>(width) / 100, static_cast<double>(height) / 100);
    case PlotForm::Type::text:
      break;
  }
  const auto columns = static_cast<std::size_t>(form.columns);
  const std::size_t wide = std::max(columns, longest_name(plot) + 12);
  return fmt::format("dumb nofeed size {},{} {}\nset tmargin 1\nset rmargin {}", wide,
                     static_cast<std::size_t>(form.rows) + lines_of_legend(plot),
                     form.colours ? "ansi" : "mono", wide - columns + 3);
}

std::string layout_of(const Plot& plot, const PlotForm& form) {
  const bool text = form.type == PlotForm::Type::text;
  std::string layout = fmt::format("set encoding utf8\nset terminal {}\n", terminal_of(plot, form));
  // Colours that colour-blind people can tell apart.
  if (!text) layout += "set colorsequence podo\nset grid\n";
  layout += fmt::format("set border 3\nset tics nomirror out\n{}\nset xlabel {}\n",
                        plot.is_logarithmic ? "set logscale x" : "set xrange [0:*]",
                        gnuplot_quoted(plot.across));
  if (plot.has_logarithmic_values) layout += "set logscale y\n";
  layout +=
      fmt::format("set {} {} noenhanced\n", text ? "title" : "ylabel", gnuplot_quoted(plot.up));
  if (lines_of_legend(plot) == 0) return layout + "unset key\n";
  return layout + fmt::format("set key {} vertical maxcols 1 Left reverse noenhanced\n",
                              text ? "bmargin left samplen 2" : "outside right top");
}

// The points with their bands, and once more those between gaps, through which no line goes.
std::string data_of(const Plot::Curve& curve) {
  std::string data = "# x y least most alone\n";
  const std::vector<PlotPoint>& points = curve.points;
  const auto is_gap = [&](std::size_t i) { return i >= points.size() || std::isnan(points[i].y); };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto [x, y] = points[i];
    const auto [least, most] = curve.band.empty() ? PlotRange{y, y} : curve.band[i];
    const bool alone = (i == 0 || is_gap(i - 1)) && is_gap(i + 1);
    data += is_gap(i) ? fmt::format("{} NaN NaN NaN NaN\n", x)
                      : fmt::format("{} {} {} {} {}\n", x, y, least, most,
                                    alone ? fmt::to_string(y) : "NaN");
  }
  return data;
}

}  // namespace

std::string gnuplot_script(const Plot& plot, const PlotForm& form) {
  constexpr std::size_t kColours = 8;
  // The characters of gnuplot's lines, in its order.
  constexpr std::string_view kMarks = "*#$%@&=";
  const bool text = form.type == PlotForm::Type::text;
  std::string script = layout_of(plot, form);
  std::string bands;
  std::string lines;
  for (std::size_t i = 1; i <= plot.curves.size(); ++i) {
    const Plot::Curve curve = thinned(
        plot.curves[i - 1], text ? 2 * static_cast<std::size_t>(form.columns) : std::size_t{1000});
    const std::string data = data_of(curve);
    script += fmt::format("$curve{} << END\n{}END\n", i, data);
    if (!text && !curve.band.empty()) {
      bands += fmt::format(
          ", \\\n  $curve{0} using 1:3:4 with filledcurves fs transparent solid 0.25 noborder lt "
          "{0} "
          "notitle",
          i);
    }
    lines += fmt::format(", \\\n  $curve{0} using 1:2 with lines lt {0} dt {1} title {2}", i,
                         text ? 1 : (i - 1) / kColours + 1,
                         gnuplot_quoted(text ? ' ' + curve.name : curve.name));
    lines += fmt::format(", \\\n  $curve{0} using 1:5 with points lt {0} pt {1} notitle", i,
                         text ? gnuplot_quoted(kMarks.substr((i - 1) % kMarks.size(), 1)) : "7");
  }
  return script + "plot" + (bands + lines).substr(1) + '\n';
}

}  // namespace rubato
