#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runs/experiment/conduct/run_result.hpp"
#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "statistics.hpp"

namespace rubato {

/// The result of tuning an option for one subject.
struct TuningAnswer {
  struct Value {
    std::string value;
    /// Mean of the final values; empty if any run has none.
    std::optional<Estimate> estimate{};
    /// The end of each run, such as "finished" or "diverged".
    std::vector<std::string> ends{};
    /// True if one of them is lost (is_lost()).
    bool is_lost = false;
    /// The final values of those that have one.
    std::vector<double> finals{};
  };
  std::string option;
  /// TuningSubject::words.
  std::string setting;
  bool is_accuracy = true;
  /// In ascending order if they are numbers.
  std::vector<Value> values;
  /// Index of the best; 0 if no value brought its runs to an end.
  std::size_t best = 0;
  /// True if the best is the smallest or the largest of all, so that a better one may lie beyond.
  bool at_end = false;
};

/// The results for each subject, judged by the means of the final values, in the order of
/// subjects_of(); `results` and `measures` have one element per run, cell by cell.
[[nodiscard]] std::vector<TuningAnswer> tuning_answer(const Design& design,
                                                      std::span<const TuningCell> cells,
                                                      std::span<const RunResult> results,
                                                      std::span<const Measure> measures);

/// The runs to be done next, given the answers so far; none when each subject has its best value
/// (next_values()).
[[nodiscard]] std::vector<TuningCell> tuning_after(const Design& design,
                                                   std::span<const TuningAnswer> answers);

/// Throws Error for a subject with which no value brought all of its runs to an end, or with which
/// no rate of a search trains: all runs are lost, or all rates give the same loss.
void require_tuned(const Design& design, std::span<const TuningAnswer> answers);

/// "lr 0.01 as given: not tuned"; empty if the learning rate is tuned or takes several values.
[[nodiscard]] std::string untuned_rate(const Design& design);

}  // namespace rubato
