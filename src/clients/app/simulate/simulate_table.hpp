#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/core/text/wrapped.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato::app {

/// One of the simulated trainings.
struct SimulatedRun {
  /// The options that differ between the runs, with the values of this run.
  std::vector<std::pair<std::string, std::string>> options{};
  SimulatedTraining training{};
};

/// A table with a line for each run and a column for each option that differs. There must be at
/// least one run, and all must have the same options.
[[nodiscard]] std::string simulation_table(std::span<const SimulatedRun> runs,
                                           LineWidth width = {});
/// The same as a list in JSON, with the modelled time as in the metrics.
[[nodiscard]] std::string simulation_json(std::span<const SimulatedRun> runs);

}  // namespace rubato::app
