#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/train/records/record_column.hpp"
#include "runs/recorded/plot/plot.hpp"

namespace rubato {

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
