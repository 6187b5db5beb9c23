#include "plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

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

// The smallest number that is 1, 2 or 5 times a power of ten, and of which `count` add up to at
// least `length`.
double round_step(double length, int count) {
  const double least = length / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= least * (1 - 1e-9)) return power * factor;
  }
  return power * 10;
}

void add_ticks(PlotAxis& axis, double step) {
  const auto first = std::llround(std::ceil(axis.least / step - 1e-6));
  const auto last = std::llround(std::floor(axis.most / step + 1e-6));
  for (auto i = first; i <= last; ++i) axis.ticks.push_back(static_cast<double>(i) * step);
}

// Returns whether there are more points than this many parts can show individually.
bool is_dense(std::span<const PlotPoint> points, std::size_t parts) {
  return points.size() > 4 * parts && !points.empty();
}

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

PlotAxis axis_across(const Plot& plot, int ticks) {
  Range range;
  for (const Plot::Curve& curve : plot.curves) {
    for (const PlotPoint& point : curve.points) range.take(point.x);
  }
  PlotAxis axis{.least = 0, .most = range.most > 0 ? range.most : 1};
  add_ticks(axis, round_step(axis.most, ticks));
  return axis;
}

PlotAxis axis_up(const Plot& plot, int ticks) {
  Range range;
  for (const Plot::Curve& curve : plot.curves) {
    for (const PlotPoint& point : curve.points) range.take(point.y);
    for (const PlotRange& of_point : curve.band) {
      range.take(of_point.least);
      range.take(of_point.most);
    }
  }
  if (range.least > range.most) range = {.least = 0, .most = 1};
  // The smallest difference that can be distinguished.
  const double apart = std::max(std::fabs(range.least), std::fabs(range.most)) * 1e-9;
  if (range.most - range.least <= apart) {
    const double around = range.most == 0 ? 1 : std::fabs(range.most) * 0.1;
    range = {.least = range.least - around, .most = range.most + around};
  }
  const double step = round_step(range.most - range.least, ticks);
  PlotAxis axis{.least = std::floor(range.least / step + 1e-6) * step,
                .most = std::ceil(range.most / step - 1e-6) * step};
  add_ticks(axis, step);
  return axis;
}

std::string PlotAxis::text_of(double tick) const {
  constexpr std::array<std::pair<double, std::string_view>, 3> kUnits{
      {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  const double largest = std::max(std::fabs(least), std::fabs(most));
  for (const auto& [size, name] : kUnits) {
    if (largest < 10 * size || tick == 0) continue;
    return fmt::format("{:.6g}{}", tick / size, name);
  }
  return fmt::format("{:.6g}", tick == 0 ? 0.0 : tick);
}

std::vector<PlotPoint> decimated(std::span<const PlotPoint> points, std::size_t parts) {
  if (!is_dense(points, parts)) return {points.begin(), points.end()};
  std::vector<PlotPoint> kept;
  for_each_part(points, parts, [&](std::span<const PlotPoint> part) {
    // Indices of the first, the lowest and the highest point, of a gap, and of the last point.
    std::array<std::size_t, 5> of_part{0, 0, 0, 0, part.size() - 1};
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto beats = [&](std::size_t other, bool better) {
        return std::isnan(part[other].y) || better;
      };
      if (std::isnan(part[i].y)) {
        of_part[3] = i;
        continue;
      }
      if (beats(of_part[1], part[i].y < part[of_part[1]].y)) of_part[1] = i;
      if (beats(of_part[2], part[i].y > part[of_part[2]].y)) of_part[2] = i;
    }
    std::ranges::sort(of_part);
    for (std::size_t i = 0; i < of_part.size(); ++i) {
      if (i == 0 || of_part[i] != of_part[i - 1]) kept.push_back(part[of_part[i]]);
    }
  });
  return kept;
}

std::vector<PlotPoint> averaged(std::span<const PlotPoint> points, std::size_t parts) {
  std::vector<PlotPoint> means;
  if (!is_dense(points, parts)) return means;
  for_each_part(points, parts, [&](std::span<const PlotPoint> part) {
    double sum = 0;
    double finite = 0;
    for (const PlotPoint& point : part) {
      if (!std::isfinite(point.y)) continue;
      sum += point.y;
      ++finite;
    }
    const double middle = (part.front().x + part.back().x) / 2;
    means.push_back({middle, finite > 0 ? sum / finite : std::numeric_limits<double>::quiet_NaN()});
  });
  return means;
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

}  // namespace rubato
