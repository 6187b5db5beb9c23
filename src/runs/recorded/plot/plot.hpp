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

/// Curves over one another, as a value.
struct Plot {
  struct Curve {
    std::string name{};
    /// In ascending order of x.
    std::vector<PlotPoint> points{};
    /// The band of a mean of several curves has their least and greatest value at each point; other
    /// curves have none.
    std::vector<PlotRange> band{};
  };

  /// What is below the axis ("samples"), and beside it ("test_accuracy, %").
  std::string across{};
  std::string up{};
  std::vector<Curve> curves{};
};

/// A scale with round numbers on it.
struct PlotAxis {
  double least = 0;
  double most = 1;
  std::vector<double> ticks{};

  /// Where a value is, from 0 to 1 for those between the ends.
  [[nodiscard]] double place_of(double value) const { return (value - least) / (most - least); }
  /// The text of a tick: "0.25", and "20k" where the ends are far from one another.
  [[nodiscard]] std::string text_of(double tick) const;
};
/// From 0 on, and that of the values from a tick to a tick; about `ticks` of them.
[[nodiscard]] PlotAxis axis_across(const Plot& plot, int ticks);
[[nodiscard]] PlotAxis axis_up(const Plot& plot, int ticks);

/// The curve with at most about four points in each of `parts` parts of its breadth: the first, the
/// last, the lowest and the highest. Drawn in that many columns it looks the same.
[[nodiscard]] std::vector<PlotPoint> decimated(std::span<const PlotPoint> points,
                                               std::size_t parts);
/// The curve with the mean of the points in each of `parts` parts, a gap where all of them are;
/// empty where decimated() leaves the points as they are, which say it themselves.
[[nodiscard]] std::vector<PlotPoint> averaged(std::span<const PlotPoint> points, std::size_t parts);

/// The mean of the curves of several runs, point by point as far as all of them have one that is
/// finite: those that are left would say too much good.
[[nodiscard]] Plot::Curve mean_curve(std::string name,
                                     std::span<const std::vector<PlotPoint>> runs);

}  // namespace rubato
