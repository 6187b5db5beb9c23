#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace rubato {

/// A point of a curve; one whose y is NaN is a gap.
struct PlotPoint {
  double x = 0;
  double y = 0;

  friend bool operator==(const PlotPoint&, const PlotPoint&) = default;
};

struct PlotRange {
  double least = 0;
  double most = 0;

  friend bool operator==(const PlotRange&, const PlotRange&) = default;
};

/// A plot of one or more curves.
struct Plot {
  struct Curve {
    std::string name{};
    /// Points in ascending order of x.
    std::vector<PlotPoint> points{};
    /// The band of a mean of several curves has their least and greatest value at each point; other
    /// curves have none.
    std::vector<PlotRange> band{};
  };

  /// Labels of the horizontal axis ("samples") and of the vertical axis ("test_accuracy, %").
  std::string across{};
  std::string up{};
  std::vector<Curve> curves{};
};

/// A scale with round numbers as ticks.
struct PlotAxis {
  double least = 0;
  double most = 1;
  std::vector<double> ticks{};

  /// Position of a value: 0 and 1 are the ends of the scale.
  [[nodiscard]] double place_of(double value) const { return (value - least) / (most - least); }
  /// The text of a tick: "0.25", or "20k" if the numbers are large.
  [[nodiscard]] std::string text_of(double tick) const;
};
/// The scales of a plot, with about `ticks` ticks: the horizontal one begins at 0, the vertical one
/// begins and ends at a tick.
[[nodiscard]] PlotAxis axis_across(const Plot& plot, int ticks);
[[nodiscard]] PlotAxis axis_up(const Plot& plot, int ticks);

/// The curve with about four points in each of `parts` equal parts of its width: the first, last,
/// lowest and highest. It looks the same if drawn in this many columns.
[[nodiscard]] std::vector<PlotPoint> decimated(std::span<const PlotPoint> points,
                                               std::size_t parts);
/// The curve with the mean of the points in each of `parts` equal parts of its width, and a gap for
/// a part with gaps only. Empty if decimated() would keep all points, because then they need no
/// averaging.
[[nodiscard]] std::vector<PlotPoint> averaged(std::span<const PlotPoint> points, std::size_t parts);

/// The mean of the curves of several runs, point by point, as far as all of them have finite
/// values: the mean of the survivors would be biased towards good results.
[[nodiscard]] Plot::Curve mean_curve(std::string name,
                                     std::span<const std::vector<PlotPoint>> runs);

}  // namespace rubato
