#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loop/train/record_schemas.hpp"
#include "runs/report/run_view.hpp"

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

/// A plot as lines for a terminal, with `rows` rows for the curves: axes with numbers, and a legend
/// if there are several curves. Curves consist of braille dots if the terminal has UTF-8 and they
/// can be distinguished, by colour or because there is only one; otherwise of characters, which
/// differ for up to 22 curves.
[[nodiscard]] std::vector<std::string> plot_lines(const Plot& plot, const ViewStyle& style,
                                                  int rows);

/// A column of numbers that metrics.jsonl has for each step or each epoch.
struct CurveColumn {
  /// Whether it belongs to epochs; otherwise to steps.
  bool of_epochs = false;
  ColumnInfo info;

  /// Label of its axis: "test_accuracy, %".
  [[nodiscard]] std::string label() const;
};
/// The column of a name in the schemas of steps and epochs (docs/records.md): "loss", or
/// "seconds.wall" and "wall_seconds", which are the same. The prefix "test_" may be omitted, as in
/// "accuracy". A step's column takes precedence over an epoch's. Throws Error for any other name,
/// with the names that exist.
[[nodiscard]] CurveColumn curve_column(std::string_view name);

/// The quantity on the horizontal axis.
enum class CurveOver { samples, steps, hours, money };

/// The curve of a run, from the metrics written so far: shares are in %, and numbers that are not
/// finite are NaN. Lines without a value are left out. Throws Error if the metrics are not those of
/// a run.
[[nodiscard]] std::vector<PlotPoint> recorded_curve(const std::filesystem::path& run,
                                                    const CurveColumn& y, CurveOver x);

}  // namespace rubato
