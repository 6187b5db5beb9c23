#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "design.hpp"

namespace rubato {

/// A run of an experiment.
struct PlannedRun {
  /// Name of its folder: "a100_linear_seed-1". It depends on the run's own values only, so that a
  /// larger experiment in the same folder finds the run; equal runs have the name of the first.
  std::string name;
  RunConfiguration configuration;
  std::uint64_t seed = 0;
  /// Index of subjects_of(): the one that the run tunes, or whose tuned value it has.
  std::size_t subject = 0;
};

/// The runs that differ in nothing but the seed.
struct PlannedCell {
  /// Labels of the trace, the rule and each other axis, in the order of ExperimentPlan::columns.
  std::vector<std::string> labels{};
  /// Index of its condition in ExperimentPlan::conditions. Cells of one condition are compared with
  /// each other: they share the trace and everything else that a user is given and does not choose
  /// (is_condition()).
  std::size_t condition = 0;
  /// Index of its setting in ExperimentPlan::settings. Cells of one setting share a baseline: they
  /// differ in trace and rule only.
  std::size_t setting = 0;
  bool is_baseline = false;
  /// Indices of ExperimentPlan::runs, one for each seed, in the order of ExperimentPlan::seeds.
  std::vector<std::size_t> runs{};
};

/// The runs of a cell at another learning rate.
struct PlannedRate {
  /// Index of ExperimentPlan::cells.
  std::size_t cell = 0;
  /// The rate of the cell is multiplied by it; a power of two.
  double factor = 1;
  /// Indices of ExperimentPlan::runs, one for each seed.
  std::vector<std::size_t> runs{};
};

/// All runs of an experiment, and how they are grouped.
struct ExperimentPlan {
  /// The options that tell cells apart: trace, rule and the other axes, in the order of the table.
  std::vector<std::string> columns;
  std::vector<std::string> seeds;
  /// Cells ordered by condition. A cell of the design that equals a baseline appears once.
  std::vector<PlannedCell> cells;
  /// First those of the cells, then those of `rates`. Runs of the same name are equal, and trained
  /// once.
  std::vector<PlannedRun> runs;
  /// Empty unless Design::rates is above 1.
  std::vector<PlannedRate> rates{};
  /// Description of each condition: "trace a100".
  std::vector<std::string> conditions;
  /// Description of each setting: "optimizer adam"; an empty text if there is only one.
  std::vector<std::string> settings;
};

/// Whether results under different values of the option must not be compared, as with the trace and
/// the data.
[[nodiscard]] bool is_condition(std::string_view option);

/// The runs of a design. `tuned` has the tuned option's value for each subject; it is empty without
/// tuning. Throws Error if the options of a run contradict each other, naming the run.
[[nodiscard]] ExperimentPlan plan_of(const Design& design,
                                     const std::vector<std::string>& tuned = {});

/// A subject that an option is tuned for: the baseline of a setting or, with TuneFor::each, a
/// combination.
struct TuningSubject {
  /// "optimizer adam" for a setting, empty if there is only one; "trace a100, rule linear".
  std::string words;
  /// The learning rate from which a search for the best begins: that of the run of which this is a
  /// fork, otherwise the usual one of the optimizer.
  double usual_rate = 0;
};
/// Throws Error for a combination whose rule is a function in Python, as only Python trains it.
[[nodiscard]] std::vector<TuningSubject> subjects_of(const Design& design);

/// The runs that try one value of the tuned option for one subject.
struct TuningCell {
  std::size_t subject = 0;
  std::string value;
  std::vector<PlannedRun> runs;
};
/// The runs that try values of the tuned option, of which `values` has some for each subject, on
/// seeds from kFirstTuningSeed on that are not compared.
[[nodiscard]] std::vector<TuningCell> tuning_of(
    const Design& design, const std::vector<std::vector<std::string>>& values);
/// The runs with the values that are tried first; none without Design::tuning.
[[nodiscard]] std::vector<TuningCell> tuning_of(const Design& design);
inline constexpr std::uint64_t kFirstTuningSeed = 1'000'001;
/// The seeds on which a design is tuned.
[[nodiscard]] std::vector<std::string> tuning_seeds_of(const Design& design);

/// The beginning of the names of runs that tune, in a list with other runs.
inline constexpr std::string_view kTuneMark = "tune/";
/// The names of these runs that tune, with kTuneMark, and then of all runs of the plan.
[[nodiscard]] std::vector<std::string> names_of_runs(const Design& design,
                                                     const std::vector<TuningCell>& tuning);
/// The same with the runs that tune first, which are all that are known in advance.
[[nodiscard]] std::vector<std::string> names_of_runs(const Design& design);

}  // namespace rubato
