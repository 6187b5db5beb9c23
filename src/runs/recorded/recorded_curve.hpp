#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/train/records/record_column.hpp"
#include "runs/recorded/plot/plot.hpp"

namespace rubato {

/// A column of numbers that metrics.jsonl has of each step or each epoch.
struct CurveColumn {
  /// Whether it is of epochs.
  bool of_epochs = false;
  ColumnInfo info;

  /// "test_accuracy, %": what stands beside its axis.
  [[nodiscard]] std::string label() const;
};
/// That of a name from the schemas of steps and epochs (docs/records.md): "loss", "seconds.wall" or
/// "wall_seconds", and without "test_" what only epochs have, as "accuracy". A step's goes before
/// an epoch's. Throws Error, with the names that there are, for another.
[[nodiscard]] CurveColumn curve_column(std::string_view name);

/// What a curve is over.
enum class CurveOver { samples, steps, hours, money };

/// The curve of a run from its metrics, as far as they go: shares in %, NaN for what is not finite.
/// What has no value is left out. Throws Error for metrics that are none of a run.
[[nodiscard]] std::vector<PlotPoint> recorded_curve(const std::filesystem::path& run,
                                                    const CurveColumn& y, CurveOver x);

}  // namespace rubato
