// The same choices as in the browser (web/lines.js, web/intervals.js): looks and names of curves, a
// logarithmic scale for means above 0 that span more than three powers of ten, and the colors of
// verdicts. The JSON is the page's own, so every member that it always has is taken to be there.

#include "drawn_charts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "html.hpp"
#include "svg.hpp"

namespace rubato::page {

namespace {

constexpr double kHeight = 210;
// Curves of more runs would not be told apart.
constexpr std::size_t kMostDrawnRuns = 8;
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
  // Empty if they are the means.
  std::vector<double> low{};
  std::vector<double> high{};
};

std::vector<std::size_t> runs_of(const Json& figure, const Json& charts) {
  std::vector<std::size_t> runs;
  if (figure.contains("runs")) {
    runs = figure["runs"].get<std::vector<std::size_t>>();
  } else {
    for (std::size_t i = 0; i < charts["runs"].size(); ++i) runs.push_back(i);
  }
  runs.resize(std::min(runs.size(), kMostDrawnRuns));
  return runs;
}

// As looksOf() and nameOf() of web/.
DrawnCurve curve_in(const Json& charts, std::size_t run, const Json& figure, std::size_t number) {
  const Json& of = charts["runs"][run];
  const bool is_alone = charts["runs"].size() == 1;
  const std::size_t place = is_alone ? number : of.value("color", run);
  const std::size_t dash = (is_alone ? place : place / kColors) % kDashes;
  const bool is_base = of.value("baseline", false);
  DrawnCurve curve;
  curve.line = is_base ? "curve base" : fmt::format("curve s{} d{}", place % kColors, dash);
  curve.fill = is_base ? "fbase" : fmt::format("f{}", place % kColors);
  const auto label = figure["curves"][number]["label"].get<std::string>();
  curve.name = is_alone ? label : of["name"].get<std::string>() + (is_base ? " (baseline)" : "");
  if (!is_alone && figure["curves"].size() > 1) curve.name += ", " + label;
  return curve;
}

// The records of a run that a curve is made of, if they have it; else null.
const Json* records_of(const Json& run, const Json& curve) {
  const auto of = run.find(curve["of"].get<std::string>());
  const bool has = of != run.end() && (*of)["numbers"].contains(curve["key"].get<std::string>());
  return has ? &*of : nullptr;
}

std::vector<DrawnCurve> curves_of(const Json& charts, const Json& figure, const std::string& axis) {
  std::vector<DrawnCurve> curves;
  for (const std::size_t run : runs_of(figure, charts)) {
    for (std::size_t number = 0; number < figure["curves"].size(); ++number) {
      const Json& spec = figure["curves"][number];
      const Json* const records = records_of(charts["runs"][run], spec);
      if (records == nullptr || !(*records)["axes"].contains(axis)) continue;
      const Json& values = (*records)["numbers"][spec["key"].get<std::string>()];
      const Json& means = values.is_object() ? values["mean"] : values;
      DrawnCurve curve = curve_in(charts, run, figure, number);
      for (std::size_t i = 0; i < means.size(); ++i) {
        if (means[i].is_null()) continue;
        curve.x.push_back((*records)["axes"][axis][i].get<double>());
        curve.mean.push_back(means[i].get<double>());
        if (!values.is_object()) continue;
        curve.low.push_back(values["low"][i].get<double>());
        curve.high.push_back(values["high"][i].get<double>());
      }
      if (!curve.x.empty()) curves.push_back(std::move(curve));
    }
  }
  return curves;
}

// A path from point to point; one of sizes has steps, since each holds from the point before.
std::string path_of(const std::vector<double>& xs, const std::vector<double>& ys, const Scale& x,
                    const Scale& y, bool is_size) {
  std::string path;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (is_size && i > 0) {
      path += fmt::format("V{:.1f}H{:.1f}", y(ys[i]), x(xs[i]));
    } else {
      path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? 'M' : 'L', x(xs[i]), y(ys[i]));
    }
  }
  return path;
}

// The area between the least and the greatest values, around which the path goes.
std::string band_of(const DrawnCurve& curve, const Scale& x, const Scale& y, bool is_size) {
  std::string path = path_of(curve.x, curve.high, x, y, is_size);
  for (std::size_t i = curve.x.size(); i-- > 0;) {
    if (is_size || i + 1 == curve.x.size()) {
      path += fmt::format("V{:.1f}", y(curve.low[i]));
    } else {
      path += fmt::format("L{:.1f} {:.1f}", x(curve.x[i]), y(curve.low[i]));
    }
    if (is_size && i > 0) path += fmt::format("H{:.1f}", x(curve.x[i - 1]));
  }
  return fmt::format("<path class=\"band {}\" d=\"{}Z\"/>", curve.fill, path);
}

std::string drawn(const DrawnCurve& curve, const Scale& x, const Scale& y, bool is_size) {
  std::string svg = curve.low.empty() ? "" : band_of(curve, x, y, is_size);
  svg += fmt::format("<path class=\"{}\" d=\"{}\"/>", curve.line,
                     path_of(curve.x, curve.mean, x, y, is_size));
  if (is_size || curve.x.size() > kFewPoints) return svg;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    svg += dot_at(curve.fill, x(curve.x[i]), y(curve.mean[i]), 2.5);
  }
  return svg;
}

// The marks of a figure: one line for each, and their number by kind in the legend. With more than
// two runs nobody can tell whose they are.
std::string drawn_marks(const Json& charts, const Json& figure, const std::string& axis,
                        const Scale& x, const Scale& y, Legend& legend) {
  std::string svg;
  if (!figure.contains("marks") || charts["runs"].size() > 2) return svg;
  for (const Json& kind : figure["marks"]) {
    std::int64_t count = 0;
    for (const Json& run : charts["runs"]) {
      for (const Json& mark : run.value("marks", Json::array())) {
        if (mark["kind"] != kind) continue;
        count += mark["count"].get<std::int64_t>();
        const double at = x(mark["at"][axis].get<double>());
        svg += line_at("marked", at, y.to - 6, at, y.from, mark["kind"].get<std::string>());
      }
    }
    if (count == 0) continue;
    legend.add(line_at("marked", 10, -6, 10, 6),
               fmt::format("{} ({})", kind.get<std::string>(), count));
  }
  return svg;
}

Scale value_scale(const std::vector<DrawnCurve>& curves, bool is_size, bool is_whole) {
  ValueRange all;
  ValueRange positive;
  bool is_positive = true;
  for (const DrawnCurve& curve : curves) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      all.add(curve.low.empty() ? curve.mean[i] : curve.low[i]);
      all.add(curve.low.empty() ? curve.mean[i] : curve.high[i]);
      if (curve.mean[i] > 0) positive.add(curve.mean[i]);
      is_positive = is_positive && curve.mean[i] > 0;
    }
  }
  if (is_positive && !is_size && positive.high > 1000 * positive.low) return log_scale(positive);
  if (is_size) all.add(0);
  return linear_scale(all, 5, /*is_nice=*/true, is_whole);
}

std::string drawn_lines(const Json& charts, const Json& figure) {
  std::string axis = charts.value("axis", std::string(kAxisRows.front().key));
  std::vector<DrawnCurve> curves = curves_of(charts, figure, axis);
  for (std::size_t i = 0; curves.empty() && i < kAxes; ++i) {
    axis = kAxisRows.at(i).key;
    curves = curves_of(charts, figure, axis);
  }
  if (curves.empty()) return {};
  const AxisRow& across = *std::ranges::find(kAxisRows, axis, &AxisRow::key);
  const std::string label = figure.value("across", std::string(across.label));
  const bool is_size = figure.value("size", false);
  Scale y = value_scale(curves, is_size, figure.value("whole", false));
  double left = 10;
  for (const double tick : y.ticks) left = std::max(left, 8 + drawn_width(tick_text(tick)));
  y.from = kHeight - 34;
  y.to = 12;
  ValueRange reach;
  for (const DrawnCurve& curve : curves) {
    reach.add(std::min(0.0, curve.x.front()));
    reach.add(curve.x.back());
  }
  Scale x = linear_scale(reach, 5, /*is_nice=*/false, across.is_whole);
  x.from = left;
  x.to = kDrawingRight;
  Legend legend(kHeight);
  std::string svg = axis_below(x, y.from, kHeight, label) + axis_beside(y, left);
  for (const DrawnCurve& curve : curves) {
    svg += drawn(curve, x, y, is_size);
    if (curves.size() > 1) legend.add(line_at(curve.line, 0, 0, 20, 0), curve.name);
  }
  svg += drawn_marks(charts, figure, axis, x, y, legend);
  const std::string words = fmt::format("{} against {}", figure["title"].get<std::string>(), label);
  return svg_of(legend.height(), words, svg + legend.svg());
}

// As verdictColors of web/intervals.js.
int verdict_color(const std::string& verdict) {
  constexpr std::array<std::pair<std::string_view, int>, 5> kVerdicts{
      {{"best", 2}, {"better", 2}, {"tied", 0}, {"worse", 1}, {"lost", 6}}};
  constexpr int kOthers = 7;
  // Verdicts at a learning rate that was not tuned have a mark.
  const std::string_view name = std::string_view(verdict).substr(0, verdict.find('*'));
  const auto* const found =
      std::ranges::find(kVerdicts, name, &std::pair<std::string_view, int>::first);
  return found == kVerdicts.end() ? kOthers : found->second;
}

std::string drawn_interval(const Json& row, double top, const Scale& x,
                           std::optional<double> reference) {
  const auto verdict = row["verdict"].get<std::string>();
  const auto words = row["text"].get<std::string>() + (verdict == "-" ? "" : "  " + verdict);
  const auto label =
      row["label"].get<std::string>() + (row.value("baseline", false) ? " (baseline)" : "");
  const double middle = top + 29;
  std::string svg = text_at(x.from, top + 15, label, " class=\"strong\"") +
                    text_at(x.to, top + 15, words, " text-anchor=\"end\"") +
                    line_at("rule", x.from, middle, x.to, middle);
  if (reference) svg += line_at("reference", x(*reference), middle - 9, x(*reference), middle + 9);
  const int color = verdict_color(verdict);
  for (const Json& seed : row["points"]) {
    svg += dot_at(fmt::format("seed s{}", color), x(seed.get<double>()), middle, 3);
  }
  if (!row.contains("mean")) return svg;
  const double mean = row["mean"].get<double>();
  const double half = row.value("half", 0.0);
  if (half > 0) {
    svg +=
        line_at(fmt::format("interval s{}", color), x(mean - half), middle, x(mean + half), middle);
  }
  return svg + dot_at(fmt::format("f{}", color), x(mean), middle, 5);
}

std::string drawn_intervals(const Json& figure) {
  constexpr double kPitch = 44;
  ValueRange range;
  std::optional<double> reference;
  if (figure.contains("reference")) reference = figure["reference"].get<double>();
  if (figure.value("zero", false)) reference = 0;
  if (reference) range.add(*reference);
  for (const Json& row : figure["rows"]) {
    for (const Json& seed : row["points"]) range.add(seed.get<double>());
    if (!row.contains("mean")) continue;
    range.add(row["mean"].get<double>() - row.value("half", 0.0));
    range.add(row["mean"].get<double>() + row.value("half", 0.0));
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
  const std::string unit = figure["unit"].get<std::string>();
  svg += axis_below(x, top + 2, bottom,
                    figure["title"].get<std::string>() + (unit.empty() ? "" : ", " + unit));
  Legend legend(bottom);
  legend.add(dot_at("f7", 10, 0, 4), "mean");
  legend.add(line_at("interval s7", 0, 0, 20, 0), "95 % interval");
  legend.add(dot_at("seed s7", 10, 0, 4), "one seed");
  if (figure.contains("reference")) {
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
