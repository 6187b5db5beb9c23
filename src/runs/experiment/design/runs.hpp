#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "design.hpp"

namespace rubato {

/// A run of an experiment.
struct PlannedRun {
  /// Of its folder: "a100_linear_seed-1". It depends on its own values alone, so that a larger
  /// experiment in the same folder finds it.
  std::string name;
  RunConfiguration configuration;
  std::uint64_t seed = 0;
};

/// The runs that differ in nothing but the seed.
struct PlannedCell {
  /// Of the trace, the rule and each other axis, in the order of ExperimentPlan::columns.
  std::vector<std::string> labels{};
  /// Which cells are compared with each other: those of one number share the trace and all else
  /// that a user is given and does not choose (is_condition()).
  std::size_t condition = 0;
  /// Which baseline it is compared with: those of one number differ in trace and rule alone.
  std::size_t setting = 0;
  bool is_baseline = false;
  /// Indices of ExperimentPlan::runs, one for each seed, in the order of ExperimentPlan::seeds.
  std::vector<std::size_t> runs{};
};

/// All that is to be run.
struct ExperimentPlan {
  /// The options that tell cells apart: trace, rule and the other axes, in the order of the table.
  std::vector<std::string> columns;
  std::vector<std::string> seeds;
  /// Condition by condition. A cell of the design that is a baseline is not there twice.
  std::vector<PlannedCell> cells;
  std::vector<PlannedRun> runs;
  /// Of each condition, in words: "trace a100".
  std::vector<std::string> conditions;
  /// By number, how the settings are called: "optimizer adam"; empty where there is one only.
  std::vector<std::string> settings;
};

/// Whether results under different values of the option are not to be compared: the trace, the
/// data.
[[nodiscard]] bool is_condition(std::string_view option);

/// The runs of a design; with what was tuned, by setting, as `tuned` (empty where nothing was).
/// Throws Error where the options of a run contradict each other, naming the run.
[[nodiscard]] ExperimentPlan plan_of(const Design& design,
                                     const std::vector<std::string>& tuned = {});

/// A value that is tried for a setting.
struct TuningCell {
  std::size_t setting = 0;
  std::string value;
  std::vector<PlannedRun> runs;
};
/// The runs that find the values of Design::tuning: the baseline of each setting with each of them.
[[nodiscard]] std::vector<TuningCell> tuning_of(const Design& design);

}  // namespace rubato
