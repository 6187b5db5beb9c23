// The same choices as in the browser (web/lines.js, web/intervals.js): looks and names of curves, a
// logarithmic scale for means above 0 that span more than three powers of ten, and the colors of
// verdicts. The JSON is the page's own, so every member that it always has is taken to be there.

#include "drawn_charts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "html.hpp"
#include "svg.hpp"

namespace rubato::page {

namespace {

constexpr double kHeight = 210;
// More curves would not be told apart.
constexpr std::size_t kMostCurves = 8;
constexpr std::size_t kColors = 8;
constexpr std::size_t kDashes = 4;
// Lines with so few points show each of them.
constexpr std::size_t kFewPoints = 12;

// A curve of a figure; values that are missing have been left out.
struct DrawnCurve {
  std::string name{};
  std::string line{};
  std::string fill{};
  std::vector<double> x{};
  std::vector<double> mean{};
  // The means, unless `has_band`.
  std::vector<double> low{};
  std::vector<double> high{};
  bool has_band = false;
};

// Gives a curve the looks and the name that looksOf() and nameOf() of web/ give it. The curves of
// an experiment each have a run of their own.
DrawnCurve curve_in(const Json& figure, const Json& run, std::size_t number) {
  DrawnCurve curve;
  if (run.value("baseline", false)) {
    curve.name = run["name"].get<std::string>() + " (baseline)";
    curve.line = "curve base";
    curve.fill = "fbase";
    return curve;
  }
  const bool is_experiment = figure.contains("runs");
  const std::size_t place = is_experiment ? run["color"].get<std::size_t>() : number;
  const std::size_t dash = (is_experiment ? place / kColors : place) % kDashes;
  curve.name = is_experiment ? run["name"] : figure["curves"][number]["label"];
  curve.line = fmt::format("curve s{} d{}", place % kColors, dash);
  curve.fill = fmt::format("f{}", place % kColors);
  return curve;
}

// Adds the values of a curve in the records that it is made of, if they have it.
void put_values(const Json& records, const std::string& key, const std::string& axis,
                DrawnCurve& curve) {
  if (!records["numbers"].contains(key) || !records["axes"].contains(axis)) return;
  const Json& values = records["numbers"][key];
  curve.has_band = values.is_object();
  const auto of = [&](const char* name) -> const Json& {
    return curve.has_band ? values[name] : values;
  };
  for (std::size_t i = 0; i < of("mean").size(); ++i) {
    if (of("mean")[i].is_null()) continue;
    curve.x.push_back(records["axes"][axis][i].get<double>());
    curve.mean.push_back(of("mean")[i].get<double>());
    curve.low.push_back(of("low")[i].get<double>());
    curve.high.push_back(of("high")[i].get<double>());
  }
}

std::vector<DrawnCurve> curves_of(const Json& charts, const Json& figure, const std::string& axis) {
  std::vector<DrawnCurve> curves;
  for (const Json& index : figure.value("runs", Json::array({0}))) {
    const Json& run = charts["runs"][index.get<std::size_t>()];
    for (std::size_t number = 0; number < figure["curves"].size(); ++number) {
      const Json& spec = figure["curves"][number];
      const auto records = run.find(spec["of"].get<std::string>());
      if (records == run.end() || curves.size() == kMostCurves) continue;
      DrawnCurve curve = curve_in(figure, run, number);
      put_values(*records, spec["key"].get<std::string>(), axis, curve);
      if (!curve.x.empty()) curves.push_back(std::move(curve));
    }
  }
  return curves;
}

// Coordinates as SVG has them.
using Points = std::vector<std::string>;

// The line goes from point to point; sizes have steps, since each holds from the point before.
Points points_of(const std::vector<double>& xs, const std::vector<double>& ys, const Scale& x,
                 const Scale& y, bool is_size) {
  Points points;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (is_size && i > 0) points.push_back(fmt::format("{:.1f} {:.1f}", x(xs[i - 1]), y(ys[i])));
    points.push_back(fmt::format("{:.1f} {:.1f}", x(xs[i]), y(ys[i])));
  }
  return points;
}

std::string drawn(const DrawnCurve& curve, const Scale& x, const Scale& y, bool is_size) {
  constexpr const char* kPath = "<path class=\"{}\" d=\"M{}\"/>";
  std::string svg;
  if (curve.has_band) {
    // The area goes along the greatest values and back along the least.
    Points around = points_of(curve.x, curve.high, x, y, is_size);
    const Points low = points_of(curve.x, curve.low, x, y, is_size);
    around.insert(around.end(), low.rbegin(), low.rend());
    svg += fmt::format(kPath, "band " + curve.fill, fmt::join(around, " "));
  }
  svg +=
      fmt::format(kPath, curve.line, fmt::join(points_of(curve.x, curve.mean, x, y, is_size), " "));
  if (is_size || curve.x.size() > kFewPoints) return svg;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    svg += dot_at(curve.fill, x(curve.x[i]), y(curve.mean[i]), 2.5);
  }
  return svg;
}

// The marks of the run of a figure: lines, of which those that are too near to the one before are
// left out, and their number by kind in the legend.
std::string drawn_marks(const Json& charts, const Json& figure, const std::string& axis,
                        const Scale& x, const Scale& y, Legend& legend) {
  constexpr double kNear = 5;
  std::string svg;
  for (const Json& kind : figure.value("marks", Json::array())) {
    std::int64_t count = 0;
    double last = -kNear;
    for (const Json& mark : charts["runs"][0]["marks"]) {
      if (mark["kind"] != kind) continue;
      count += mark["count"].get<std::int64_t>();
      const double at = x(mark["at"][axis].get<double>());
      if (std::abs(at - last) < kNear) continue;
      last = at;
      svg += line_at("marked", at, y.to - 6, at, y.from);
    }
    if (count == 0) continue;
    legend.add(line_at("marked", 10, -6, 10, 6),
               fmt::format("{} ({})", kind.get<std::string>(), count));
  }
  return svg;
}

Scale value_scale(const std::vector<DrawnCurve>& curves, bool is_size, bool is_whole) {
  ValueRange all;
  ValueRange means;
  for (const DrawnCurve& curve : curves) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      all.add(curve.low[i]);
      all.add(curve.high[i]);
      means.add(curve.mean[i]);
    }
  }
  if (!is_size && means.low > 0 && means.high > 1000 * means.low) return log_scale(means);
  if (is_size) all.add(0);
  return linear_scale(all, 5, /*is_nice=*/true, is_whole);
}

std::string drawn_lines(const Json& charts, const Json& figure) {
  std::string axis = charts.value("axis", std::string(kAxisRows.front().key));
  std::vector<DrawnCurve> curves = curves_of(charts, figure, axis);
  for (std::size_t i = 0; curves.empty() && i < kAxes; ++i) {
    curves = curves_of(charts, figure, axis = kAxisRows.at(i).key);
  }
  if (curves.empty()) return {};
  const AxisRow& across = *std::ranges::find(kAxisRows, axis, &AxisRow::key);
  const bool is_size = figure.value("size", false);
  Scale y = value_scale(curves, is_size, figure.value("whole", false));
  double left = 10;
  for (const double tick : y.ticks) left = std::max(left, 8 + drawn_width(tick_text(tick)));
  y.from = kHeight - 34;
  y.to = 12;
  ValueRange reach{.low = 0, .high = 0};
  for (const DrawnCurve& curve : curves) reach.add(curve.x.back());
  Scale x = linear_scale(reach, 5, /*is_nice=*/false, across.is_whole);
  x.from = left;
  x.to = kDrawingRight;
  Legend legend(kHeight);
  std::string svg = axis_below(x, y.from, kHeight, across.label) + axis_beside(y, left);
  for (const DrawnCurve& curve : curves) {
    svg += drawn(curve, x, y, is_size);
    if (curves.size() > 1) legend.add(line_at(curve.line, 0, 0, 20, 0), curve.name);
  }
  svg += drawn_marks(charts, figure, axis, x, y, legend);
  const std::string words =
      fmt::format("{} against {}", figure["title"].get<std::string>(), across.label);
  return svg_of(legend.height(), words, svg + legend.svg());
}

// The colors are verdictColors of web/intervals.js.
int verdict_color(const std::string& verdict) {
  static const std::map<std::string, int> colors{
      {"best", 2}, {"better", 2}, {"tied", 0}, {"worse", 1}, {"lost", 6}};
  // Verdicts at a learning rate that was not tuned have a mark.
  const auto found = colors.find(verdict.substr(0, verdict.find('*')));
  return found == colors.end() ? 7 : found->second;
}

// Empty if the number is missing or, as null, not finite.
std::optional<double> finite_in(const Json& of, const char* key) {
  const auto found = of.find(key);
  if (found == of.end() || found->is_null()) return std::nullopt;
  return found->get<double>();
}

// The seeds of a row that have a finite value.
std::vector<double> seeds_of(const Json& row) {
  std::vector<double> seeds;
  for (const Json& seed : row["points"]) {
    if (!seed.is_null()) seeds.push_back(seed.get<double>());
  }
  return seeds;
}

std::string drawn_interval(const Json& row, double top, const Scale& x,
                           std::optional<double> reference) {
  const auto verdict = row["verdict"].get<std::string>();
  const auto words = row["text"].get<std::string>() + (verdict == "-" ? "" : "  " + verdict);
  const auto label =
      row["label"].get<std::string>() + (row.value("baseline", false) ? " (baseline)" : "");
  const double middle = top + 29;
  std::string svg = text_at(x.from, top + 15, fitting(label, x.to - x.from - drawn_width(words)),
                            " class=\"strong\"") +
                    text_at(x.to, top + 15, words, " text-anchor=\"end\"") +
                    line_at("rule", x.from, middle, x.to, middle);
  if (reference) svg += line_at("reference", x(*reference), middle - 9, x(*reference), middle + 9);
  const int color = verdict_color(verdict);
  for (const double seed : seeds_of(row)) {
    svg += dot_at(fmt::format("seed s{}", color), x(seed), middle, 3);
  }
  const auto mean = finite_in(row, "mean");
  if (!mean) return svg;
  const double half = finite_in(row, "half").value_or(0);
  svg +=
      line_at(fmt::format("interval s{}", color), x(*mean - half), middle, x(*mean + half), middle);
  return svg + dot_at(fmt::format("f{}", color), x(*mean), middle, 5);
}

std::string drawn_intervals(const Json& figure) {
  constexpr double kPitch = 44;
  ValueRange range;
  std::optional<double> reference = finite_in(figure, "reference");
  if (figure.value("zero", false)) reference = 0;
  if (reference) range.add(*reference);
  for (const Json& row : figure["rows"]) {
    for (const double seed : seeds_of(row)) range.add(seed);
    const auto mean = finite_in(row, "mean");
    if (!mean) continue;
    const double half = finite_in(row, "half").value_or(0);
    range.add(*mean - half);
    range.add(*mean + half);
  }
  if (range.low > range.high) return {};
  Scale x = linear_scale(range, 5, /*is_nice=*/true);
  x.from = 8;
  x.to = kDrawingRight;
  std::string svg;
  double top = 0;
  for (const Json& row : figure["rows"]) {
    svg += drawn_interval(row, top, x, reference);
    top += kPitch;
  }
  const double bottom = top + 36;
  svg += axis_below(x, top + 2, bottom, figure["unit"].get<std::string>());
  Legend legend(bottom);
  legend.add(dot_at("f7", 10, 0, 4), "mean");
  legend.add(line_at("interval s7", 0, 0, 20, 0), "95 % interval");
  legend.add(dot_at("seed s7", 10, 0, 4), "one seed");
  if (finite_in(figure, "reference")) {
    legend.add(line_at("reference", 0, 0, 20, 0), "mean of the baseline");
  }
  return svg_of(legend.height(), figure["title"].get<std::string>(), svg + legend.svg());
}

// Empty for figures of other types, for small ones, and without a value.
std::string drawn_figure(const Json& charts, const Json& figure) {
  std::string svg;
  if (figure["type"] == "lines" && !figure.value("small", false)) svg = drawn_lines(charts, figure);
  if (figure["type"] == "intervals" && !figure.value("costs", false)) svg = drawn_intervals(figure);
  if (svg.empty()) return svg;
  const auto group = figure.value("group", std::string());
  auto unit = figure["unit"].get<std::string>();
  if (figure.contains("value")) {
    unit = figure["value"].get<std::string>() + (unit.empty() ? "" : ", " + unit);
  }
  return fmt::format(
      "<figure><figcaption>{}{} <span class=\"unit\">{}</span></figcaption>\n<div "
      "class=\"chart\">{}</div></figure>\n",
      escaped(figure["title"].get<std::string>()), group.empty() ? "" : ", " + escaped(group),
      escaped(unit), svg);
}

}  // namespace

std::string drawn_charts(const Json& charts, std::size_t most) {
  constexpr std::size_t kOfSection = 2;
  std::string html;
  for (const Json& section : charts["sections"]) {
    std::size_t of_section = std::min(kOfSection, most);
    for (const Json& figure : section["figures"]) {
      if (of_section == 0) break;
      const std::string drawn = drawn_figure(charts, figure);
      if (drawn.empty()) continue;
      html += drawn;
      --of_section;
      --most;
    }
  }
  return html.empty() ? html : "<div class=\"figures\">\n" + html + "</div>\n";
}

}  // namespace rubato::page
