#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "all_conditions.hpp"
#include "runs/experiment/conduct/run_result.hpp"
#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "statistics.hpp"

namespace rubato {

/// The outcome of comparing a cell with another over the seeds: with the best of its condition, or
/// with its baseline.
enum class Verdict {
  best,
  better,
  tied,
  worse,
  non_inferior,
  not_shown,
  untested,
  baseline,
  lost,
};

struct VerdictRow {
  Verdict value;
  /// The word for it, in printed tables and in files.
  std::string_view name;
  std::string_view help;
};

inline constexpr std::array<VerdictRow, 9> kVerdicts{
    {{Verdict::best, "best", "the best mean of its condition"},
     {Verdict::better, "better", "better than the other, with a p-value (Holm) of at most 5 %"},
     {Verdict::tied, "tied", "the seeds do not tell it from the other: the p-value is above 5 %"},
     {Verdict::worse, "worse", "worse than the other, with a p-value (Holm) of at most 5 %"},
     {Verdict::non_inferior, "non-inferior",
      "behind the other by less than the margin, with a p-value (Holm) of at most 5 %"},
     {Verdict::not_shown, "not shown",
      "the seeds do not show that it is behind the other by less than the margin"},
     {Verdict::untested, "untested",
      "no test is defined: there is one seed, or all seeds differ by the same"},
     {Verdict::baseline, "baseline", "the baseline itself"},
     {Verdict::lost, "lost",
      "it has no mean: a run diverged, ran out of devices, failed or is missing"}}};

[[nodiscard]] constexpr std::string_view name_of(Verdict verdict) {
  return std::ranges::find(kVerdicts, verdict, &VerdictRow::value)->name;
}

/// The scores of a cell at several multiples of its learning rate.
struct RateCurve {
  struct Point {
    double factor = 1;
    /// The base rate of the runs.
    double rate = 0;
    /// The final values of the runs that have one, and their mean; empty if a run is lost.
    std::vector<double> values{};
    std::optional<Estimate> score{};
    std::int64_t lost = 0;
  };

  /// Index of Answer::cells.
  std::size_t cell = 0;
  /// In ascending order of the factors.
  std::vector<Point> points{};
  /// Index of the point with the best score; empty if all have lost runs.
  std::optional<std::size_t> best{};
  /// The amount that a point may lose to the best and still be in the span; empty if the baseline
  /// has a lost run or one seed.
  std::optional<double> margin{};
  /// The least and the greatest factor of the span: the points around the best that are in it.
  std::optional<std::pair<double, double>> span{};
};

/// The result of an experiment. Accuracies are in percent, their differences in percentage points;
/// losses are unscaled.
struct Answer {
  /// A difference over pairs of runs with the same seed.
  struct Comparison : PairedDifference {
    /// The p-value after Holm's correction; empty if there is no p-value.
    std::optional<double> adjusted{};
  };

  /// The test of whether a cell is behind another one by less than the margin. A cell with a lost
  /// run cannot be shown to be: a lost run is no number, but the worst rank.
  struct AgainstMargin {
    double margin = 0;
    /// MarginTest; empty where that is, for a cell with a lost run and for the other one itself.
    std::optional<double> bound{};
    std::optional<std::int64_t> seeds{};
    /// The p-value, 1 for a cell with a lost run, and the same after Holm's correction over the
    /// cells of the condition.
    std::optional<double> p{};
    std::optional<double> adjusted{};
    Verdict verdict = Verdict::untested;
  };

  /// The cost of reaching the target: medians over the seeds. A run that did not reach it counts as
  /// more than any other; a median that falls on such a run is empty.
  struct ToTarget {
    std::int64_t reached = 0;
    std::optional<double> steps{};
    std::optional<double> samples{};
    std::optional<double> hours{};
    std::optional<double> money{};
  };

  /// Means over the runs with a final value.
  struct Spent {
    double steps = 0;
    double samples = 0;
    double epochs = 0;
    double iterations = 0;
    std::optional<double> hours{};
    std::optional<double> core_hours{};
    std::optional<double> money{};
    std::optional<double> samples_per_hour{};
    std::optional<double> samples_per_core_hour{};
  };

  /// Runs with the same values of all columns.
  struct Cell {
    std::vector<std::string> labels;
    std::size_t condition = 0;
    std::size_t setting = 0;
    bool is_baseline = false;
    std::int64_t runs = 0;
    /// Mean of the final values. It is empty if any run has none: the mean of the survivors would
    /// be biased towards good results.
    std::optional<Estimate> value{};
    /// Difference to the baseline of its setting; empty for a baseline, and if either has no value.
    std::optional<Comparison> to_baseline{};
    /// Difference to the best cell of its condition; empty for the best cell, and without a value.
    std::optional<Comparison> to_best{};
    /// Verdict against the best cell of its condition; empty if the cell has a value but nothing to
    /// be compared with.
    std::optional<Verdict> rank{};
    /// Verdict against its baseline; empty if the baseline has no value.
    std::optional<Verdict> verdict{};
    /// The tests of the margin: against its baseline, and against the best cell of its condition
    /// that has no lost run. Empty without a margin, and if the other has a lost run.
    std::optional<AgainstMargin> margin_to_baseline{};
    std::optional<AgainstMargin> margin_to_best{};
    std::optional<ToTarget> to_target{};
    std::optional<Spent> spent{};
    /// Extremes over all its runs; batch_sizes is the largest number that a single run used.
    std::optional<Elasticity> elasticity{};
    /// Indices of Answer::runs.
    std::vector<std::size_t> members{};
  };

  struct Run {
    std::string name;
    std::vector<std::string> labels;
    std::uint64_t seed = 0;
    bool is_baseline = false;
    RunResult result;
    std::optional<RunPoint> to_target{};
  };

  bool is_accuracy = true;
  std::vector<std::string> columns;
  std::vector<std::string> conditions;
  std::vector<std::string> settings;
  std::vector<std::string> seeds;
  std::optional<double> target{};
  std::optional<Margin> margin{};
  /// Says that the learning rate was not tuned (untuned_rate()), and which one it is; empty if it
  /// was.
  std::string untuned{};
  /// Share of the largest class, in percent; the largest such share if the data differ between
  /// runs.
  double chance = 0;
  std::vector<Cell> cells;
  std::vector<Run> runs;
  /// Differences to a baseline that were tested: the size of Holm's family.
  std::int64_t comparisons = 0;

  /// The sensitivity of the comparison: the smallest true difference to the baseline that such a
  /// test detects with a probability of 80 %, at the level of Holm's first step, estimated from the
  /// deviations of the differences. Empty if no difference has one.
  struct Blindness {
    /// The smallest, median and largest detectable difference over the cells.
    double least = 0;
    double middle = 0;
    double most = 0;
    /// The same as an effect size, in standard deviations of the differences.
    double effect = 0;
  };
  std::optional<Blindness> blindness{};
  /// Empty for fewer than two conditions or choices.
  std::optional<AllConditions> together{};
  /// For each cell, if the comparison is repeated at other rates (Design::rates).
  std::vector<RateCurve> rates{};

  /// Whether the cells have spent anything on a virtual clock.
  [[nodiscard]] bool has_clock() const;
  /// The conditions that have more cells than the baseline.
  [[nodiscard]] std::set<std::size_t> own_conditions() const;
  /// The labels of a cell that are no conditions.
  [[nodiscard]] std::vector<std::string> choice_of(const Cell& cell) const;
  /// The cells of a condition.
  [[nodiscard]] std::vector<const Cell*> cells_of(std::size_t condition) const;
  /// Names of the runs that ended in this way.
  [[nodiscard]] std::vector<std::string> names_of(ResultEnd end) const;
  /// Returns whether `one` is the better final value.
  [[nodiscard]] bool better(double one, double other) const {
    return is_accuracy ? one > other : one < other;
  }
  /// The number of runs of the cell that are lost, with or without a value.
  [[nodiscard]] std::int64_t lost_in(const Cell& cell) const;
  /// Returns whether the cell has a value and no lost runs.
  [[nodiscard]] bool is_whole(const Cell& cell) const { return cell.value && lost_in(cell) == 0; }
  /// The final values of a cell that has a value, seed by seed.
  [[nodiscard]] std::vector<double> values_of(const Cell& cell) const;
  /// The difference of two cells that have a value, seed by seed.
  [[nodiscard]] PairedDifference difference(const Cell& one, const Cell& other) const;
  /// The baseline of the cell's setting; null if there is none.
  [[nodiscard]] const Cell* baseline_of(const Cell& cell) const;
  /// The baseline whose deviation is the unit of a condition: that of its cells, or the one with
  /// the best mean if they have several. Null if each has a lost run, one seed or no deviation.
  [[nodiscard]] const Cell* reference_of(std::size_t condition) const;
};

/// The power that Blindness is computed for.
inline constexpr double kPower = 0.8;

/// Evaluates the runs of a plan. `results` and `measures` have one element per run, in the order of
/// the plan; `target` is in percent, or a loss.
[[nodiscard]] Answer answer_of(const ExperimentPlan& plan, std::span<const RunResult> results,
                               std::span<const Measure> measures, std::optional<double> target,
                               std::optional<Margin> margin = std::nullopt);

}  // namespace rubato
