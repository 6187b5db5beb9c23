#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thinned_run.hpp"

namespace rubato::page {

/// Whose lines of metrics.jsonl a curve is made of.
enum class CurveOf { steps, epochs };

/// A curve of each run.
struct Curve {
  CurveOf of = CurveOf::steps;
  /// Its path in the schema of records: "seconds.wall".
  std::string path{};
  /// What it is, where a figure has several.
  std::string label{};
};

/// A figure with lines.
struct LineFigure {
  std::string title{};
  std::vector<Curve> curves{};
  /// Whether values stay until the next one, and go to 0: sizes.
  bool is_size = false;
  /// The values are counts, so numbers between them have no meaning.
  bool is_whole = false;
  /// The kinds of marks that belong to it.
  std::vector<std::string_view> marks{};
  /// Of its first curve, from the schema.
  std::string unit{};
  std::string help{};
  /// By what its values are multiplied: shares are shown in percent.
  double factor = 1;
};

struct FigureSection {
  std::string title{};
  std::vector<LineFigure> figures{};
};

/// The figures for which one of the runs has a number, in the order of the page. What the runs
/// report under names of their own (policies, metrics, tensors) has a figure each.
[[nodiscard]] std::vector<FigureSection> line_figures(std::span<const ThinnedRun> runs);

/// The numbers that a run has for its curves of steps or of epochs.
[[nodiscard]] inline const Buckets& numbers_of(const ThinnedRun& run, CurveOf of) {
  return of == CurveOf::steps ? run.steps : run.epochs;
}

}  // namespace rubato::page
