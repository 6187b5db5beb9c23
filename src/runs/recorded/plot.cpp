// A plot is made in three steps: recorded_curve() reads a column of one run, mean_curve() joins the
// curves of several, and thinned() reduces a curve to the resolution of the drawing;
// gnuplot_script.cpp draws it (docs/adr/0071). Steps and samples are counted over the lines of
// steps, also for a curve of epochs, while hours and money are columns of each line.

#include "plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/runs/run_folder.hpp>

#include "loop/train/record_schemas.hpp"
#include "runs/report/metrics_file.hpp"
#include "runs/report/report_schemas.hpp"

namespace rubato {

namespace {

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void take(double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

// Divides the width of the curve into `parts` equal parts, and passes the points of each part that
// has any to `take`.
template <class Take>
void for_each_part(std::span<const PlotPoint> points, std::size_t parts, const Take& take) {
  const double begin = points.front().x;
  const double breadth = points.back().x - begin;
  const auto part_of = [&](const PlotPoint& point) {
    const double share = breadth > 0 ? (point.x - begin) / breadth : 0;
    return std::min(parts - 1, static_cast<std::size_t>(share * static_cast<double>(parts)));
  };
  for (std::size_t first = 0; first < points.size();) {
    std::size_t end = first;
    while (end < points.size() && part_of(points[end]) == part_of(points[first])) ++end;
    take(points.subspan(first, end - first));
    first = end;
  }
}

}  // namespace

Plot::Curve thinned(Plot::Curve curve, std::size_t parts) {
  if (curve.points.size() <= 4 * parts) return curve;
  Plot::Curve thin{.name = std::move(curve.name)};
  for_each_part(curve.points, parts, [&](std::span<const PlotPoint> part) {
    const auto first = static_cast<std::size_t>(part.data() - curve.points.data());
    Range range;
    double sum = 0;
    double finite = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!std::isfinite(part[i].y)) continue;
      sum += part[i].y;
      ++finite;
      const PlotRange own{part[i].y, part[i].y};
      const PlotRange& values = curve.band.empty() ? own : curve.band[first + i];
      range.take(values.least);
      range.take(values.most);
    }
    // The mean of no points is NaN.
    thin.points.push_back({(part.front().x + part.back().x) / 2, sum / finite});
    thin.band.push_back({range.least, range.most});
  });
  return thin;
}

Plot::Curve mean_curve(std::string name, std::span<const std::vector<PlotPoint>> runs) {
  Plot::Curve curve{.name = std::move(name)};
  if (runs.empty()) return curve;
  const auto count = static_cast<double>(runs.size());
  for (std::size_t i = 0; i < runs.front().size(); ++i) {
    PlotPoint mean;
    Range range;
    for (const std::vector<PlotPoint>& points : runs) {
      if (i >= points.size() || !std::isfinite(points[i].y)) return curve;
      mean.x += points[i].x / count;
      mean.y += points[i].y / count;
      range.take(points[i].y);
    }
    curve.points.push_back(mean);
    if (runs.size() > 1) curve.band.push_back({range.least, range.most});
  }
  return curve;
}

namespace {

constexpr std::string_view kOfTests = "test_";

std::vector<CurveColumn> curve_columns() {
  std::vector<CurveColumn> columns;
  const auto add = [&](const auto& schema, bool of_epochs) {
    for (const auto& column : schema.columns) {
      const ColumnInfo& info = column.info();
      const bool number = info.type == ColumnType::whole || info.type == ColumnType::real;
      if (number && info.shown) columns.push_back({.of_epochs = of_epochs, .info = info});
    }
  };
  add(step_schema(), false);
  add(epoch_schema(), true);
  return columns;
}

// Reads one curve, line by line.
class CurveReader {
 public:
  CurveReader(const CurveColumn& y, CurveOver x) : y_(y), x_(x) {}

  void take(const MetricsLine& line) {
    const bool is_step = line.kind() == step_.name;
    if (!is_step && line.kind() != epoch_.name) return;
    const Cells cells = line.cells();
    if (is_step) {
      samples_ += number_in(cells, batch_index_).value_or(0);
      steps_ = number_in(cells, step_index_).value_or(0) + 1;
    }
    if (is_step == y_.of_epochs) return;
    const auto x = across(cells);
    auto y = number_in(cells, y_index_);
    if (!x || !y) return;
    if (y_.info.unit == kShareUnit) *y *= 100;
    points_.push_back({.x = *x, .y = *y});
  }
  [[nodiscard]] std::vector<PlotPoint> points() && { return std::move(points_); }

 private:
  [[nodiscard]] std::optional<double> across(const Cells& cells) const {
    switch (x_) {
      case CurveOver::samples:
        return samples_;
      case CurveOver::steps:
        return steps_;
      case CurveOver::hours:
      case CurveOver::money:
        return number_in(cells, clock_index_);
    }
    return std::nullopt;
  }

  const CurveColumn& y_;
  CurveOver x_;
  const RecordInfo& step_ = record_info(step_schema().name);
  const RecordInfo& epoch_ = record_info(epoch_schema().name);
  // The record with the points.
  const RecordInfo& record_ = y_.of_epochs ? epoch_ : step_;
  const std::size_t step_index_ = column_index(step_, "step");
  const std::size_t batch_index_ = column_index(step_, "batch");
  const std::size_t clock_index_ =
      column_index(record_, x_ == CurveOver::money ? "money" : "hours");
  const std::size_t y_index_ = column_index(record_, y_.info.name);
  double samples_ = 0;
  double steps_ = 0;
  std::vector<PlotPoint> points_;
};

}  // namespace

std::string CurveColumn::label() const {
  if (info.unit == kShareUnit) return info.name + ", %";
  return info.unit.empty() ? info.name : fmt::format("{}, {}", info.name, info.unit);
}

CurveColumn curve_column(std::string_view name) {
  const std::vector<CurveColumn> columns = curve_columns();
  for (const std::string& wanted : {std::string(name), std::string(kOfTests).append(name)}) {
    for (const CurveColumn& column : columns) {
      if (column.info.name == wanted || json_path(column.info) == wanted) return column;
    }
  }
  std::vector<std::string_view> names;
  for (const CurveColumn& column : columns) {
    if (std::ranges::find(names, column.info.name) == names.end()) {
      names.push_back(column.info.name);
    }
  }
  throw Error(unknown_name_message("column", name, names));
}

std::vector<PlotPoint> recorded_curve(const std::filesystem::path& run, const CurveColumn& y,
                                      CurveOver x) {
  GrowingLines lines(run / RunFolder::kMetrics);
  CurveReader reader(y, x);
  read_metrics(lines, [&](const MetricsLine& line) { reader.take(line); });
  return std::move(reader).points();
}

}  // namespace rubato
