#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runs/experiment/conduct/run_result.hpp"
#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/runs.hpp"
#include "runs/experiment/statistics/statistics.hpp"
#include "verdict.hpp"

namespace rubato {

/// What an experiment says. Accuracies are in percent and their differences in points, losses as
/// they are.
struct Answer {
  /// A difference over pairs of runs with the same seed.
  struct Comparison : PairedDifference {
    /// The p-value after Holm's correction; empty of one pair.
    std::optional<double> adjusted{};
  };

  /// What it took to reach the target: medians over the seeds, where a run that did not reach it
  /// counts as more than any; empty where the median is such a run.
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
    std::optional<double> money{};
  };

  /// Runs with the same values of all columns.
  struct Cell {
    std::vector<std::string> labels;
    std::size_t condition = 0;
    std::size_t setting = 0;
    bool is_baseline = false;
    std::int64_t runs = 0;
    /// Of the final values; empty where a run has none: those that are left say too much good.
    std::optional<Estimate> value{};
    /// To the baseline of its setting; empty of a baseline, and where one of both has no value.
    std::optional<Comparison> to_baseline{};
    /// To the best of its condition; empty of the best.
    std::optional<Comparison> to_best{};
    /// Beside the best of its condition; empty where it has a value and is alone.
    std::optional<Verdict> rank{};
    /// Beside its baseline; empty where that has no value.
    std::optional<Verdict> verdict{};
    std::optional<ToTarget> to_target{};
    std::optional<Spent> spent{};
    /// Of all its runs together; of batch sizes the most that one of them met.
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
  /// The share of the largest class, in percent: the largest, where data differ.
  double chance = 0;
  std::vector<Cell> cells;
  std::vector<Run> runs;
  /// Differences to a baseline that were tested: the size of Holm's family.
  std::int64_t comparisons = 0;

  /// What could not have been seen: the smallest true difference to the baseline that such a test
  /// finds with 80 % probability, at the level of Holm's first step, by the deviations of the
  /// differences. Empty where there are no pairs.
  struct Blindness {
    /// Of the cells: the least, the median and the largest.
    double least = 0;
    double middle = 0;
    double most = 0;
    /// In deviations of the differences.
    double effect = 0;
  };
  std::optional<Blindness> blindness{};

  /// Whether the cells have spent anything on a virtual clock.
  [[nodiscard]] bool has_clock() const;
  /// Names of the runs that ended so.
  [[nodiscard]] std::vector<std::string> names_of(RunEnd end) const;
};

/// The power of Blindness.
inline constexpr double kPower = 0.8;

/// Puts together what the runs of a plan came to: `results` and `measures` are theirs, in their
/// order; `target` in percent, or a loss.
[[nodiscard]] Answer answer_of(const ExperimentPlan& plan, std::span<const RunResult> results,
                               std::span<const Measure> measures, std::optional<double> target);

/// What looking for the value of an option came to, for one setting.
struct TuningAnswer {
  struct Value {
    std::string value;
    /// Of the final values; empty where a run has none.
    std::optional<Estimate> estimate{};
    /// "diverged", where not all are "finished".
    std::vector<std::string> ends{};
  };
  std::string option;
  std::string setting;
  std::vector<Value> values;
  /// Index of the best.
  std::size_t best = 0;
  /// Whether it is the smallest or the largest of the list, so that a better one may lie beyond.
  bool at_end = false;
};

/// The best value for each setting by the mean of the final values, in the order of the settings;
/// `results` and `measures` are those of all runs, cell by cell. Throws Error where no value
/// brought all its runs to an end.
[[nodiscard]] std::vector<TuningAnswer> tuning_answer(const Design& design,
                                                      std::span<const TuningCell> cells,
                                                      std::span<const std::string> settings,
                                                      std::span<const RunResult> results,
                                                      std::span<const Measure> measures);

}  // namespace rubato
