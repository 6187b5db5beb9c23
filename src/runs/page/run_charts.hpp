#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

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
};

/// A figure with lines.
struct LineFigure {
  std::string title{};
  std::vector<Curve> curves{};
  /// Whether the values are sizes: each one holds until the next, and the axis includes 0.
  bool is_size = false;
  /// Whether the values are counts, so that fractions between them have no meaning.
  bool is_whole = false;
  /// Kinds of marks that are drawn in it.
  std::vector<std::string_view> marks{};
  /// Unit and help of its first curve, from the schema.
  std::string unit{};
  std::string help{};
  /// Factor of all values; shares are shown in percent.
  double factor = 1;
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
