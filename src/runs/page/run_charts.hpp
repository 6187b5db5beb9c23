#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "loop/train/record_schemas.hpp"
#include "thinned_run.hpp"

namespace rubato::page {

/// The kind of lines of metrics.jsonl that a curve is made of.
enum class CurveOf { steps, epochs };

/// A curve that is drawn for each run.
struct Curve {
  CurveOf of = CurveOf::steps;
  /// Path in the schema of records: "seconds.wall".
  std::string path{};
  /// Name of the curve in a figure with several.
  std::string label{};
  /// The column of its numbers, which exists as long as the program; null for names that the runs
  /// define.
  const ColumnInfo* column = nullptr;
};

/// A figure with lines.
struct LineFigure {
  std::string title{};
  std::vector<Curve> curves{};
  /// Whether the values are sizes: each one holds until the next, and the axis includes 0.
  bool is_size = false;
  /// Kinds of marks that are drawn in it.
  std::vector<std::string_view> marks{};

  /// The column of its first curve, which says the unit and the help.
  [[nodiscard]] const ColumnInfo* column() const { return curves.front().column; }
};

struct FigureSection {
  std::string title{};
  std::vector<LineFigure> figures{};
};

/// The figures for which at least one run has a number, in the order of the page. Numbers that runs
/// report under their own names (policies, metrics, tensors) have a figure each.
[[nodiscard]] std::vector<FigureSection> line_figures(std::span<const ThinnedRun> runs);

/// The numbers of a run's steps or epochs.
[[nodiscard]] inline const Buckets& numbers_of(const ThinnedRun& run, CurveOf of) {
  return of == CurveOf::steps ? run.steps : run.epochs;
}

/// The times of the runs by activity, as bars: wall-clock time, thread time, and modelled time if
/// there is any.
[[nodiscard]] std::vector<nlohmann::ordered_json> time_figures(std::span<const ThinnedRun> runs);

/// The charts of runs in the form that web/main.js reads: their curves, and sections of figures. A
/// figure is included only if at least one run has data for it.
[[nodiscard]] nlohmann::ordered_json charts_of(std::span<const ThinnedRun> runs);

}  // namespace rubato::page
