#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loop/train/record_schemas.hpp"

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
    /// The least and greatest of the values that each point is the mean of; empty if the points are
    /// no means.
    std::vector<PlotRange> band{};
  };

  /// Labels of the horizontal axis ("samples") and of the vertical axis ("test_accuracy, %").
  std::string across{};
  std::string up{};
  std::vector<Curve> curves{};
  /// Whether the horizontal axis is logarithmic; it then begins with the first point, not with 0.
  bool is_logarithmic = false;
  /// True if the vertical axis is logarithmic.
  bool has_logarithmic_values = false;
};

/// A curve with more than four points in each of `parts` equal parts of its width becomes the mean
/// of each part's finite points, a gap if there are none; its band is from the least to the
/// greatest value of the part. Other curves are unchanged.
[[nodiscard]] Plot::Curve thinned(Plot::Curve curve, std::size_t parts);

/// The mean of the curves of several runs, point by point, as far as all of them have finite
/// values: the mean of the survivors would be biased towards good results.
[[nodiscard]] Plot::Curve mean_curve(std::string name,
                                     std::span<const std::vector<PlotPoint>> runs);

/// The form of a drawing: a picture of this type, or the characters of a terminal.
struct PlotForm {
  enum class Type { svg, png, pdf, text };

  Type type = Type::text;
  /// Size and colours of a terminal; legends take further rows, and long names further columns.
  int columns = 79;
  int rows = 20;
  bool colours = false;
};

/// A script for gnuplot 5.4 that contains the data and writes the drawing to its standard output.
/// Names in the legend are never cut: the drawing is as large as they need.
[[nodiscard]] std::string gnuplot_script(const Plot& plot, const PlotForm& form);

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
