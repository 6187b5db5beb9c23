#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/core/text/wrapped.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato::app {

/// One of several trainings that were simulated.
struct SimulatedRun {
  /// The options that differ between the runs, by name, with the values that it has.
  std::vector<std::pair<std::string, std::string>> options{};
  SimulatedTraining training{};
};

/// For people: a line for each run, with a column for each option that differs. All runs have the
/// same options, and there is one at least.
[[nodiscard]] std::string simulation_table(std::span<const SimulatedRun> runs,
                                           LineWidth width = {});
/// A JSON list of the same, with hours as metrics have them.
[[nodiscard]] std::string simulation_json(std::span<const SimulatedRun> runs);

}  // namespace rubato::app
