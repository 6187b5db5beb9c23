#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rubato/sim/simulate.hpp>

namespace rubato::app {

/// A training that was simulated.
struct SimulatedRun {
  /// The options that differ between the runs, by name, with the values that it has.
  std::vector<std::pair<std::string, std::string>> options{};
  SimulationResult result{};
  /// Of its steps: the mean batch, in samples, and the least and the most cores.
  double mean_batch = 0;
  std::int64_t fewest_cores = 0;
  std::int64_t most_cores = 0;
  /// Of several hosts: what the busiest sends in a step, in the mean over the steps; 0 of one.
  double host_bytes = 0;
};

/// For people: a line for each run, with a column for each option that differs. All runs have the
/// same options, and there is one at least.
[[nodiscard]] std::string simulation_table(std::span<const SimulatedRun> runs);
/// A JSON list of the same, with hours as metrics have them.
[[nodiscard]] std::string simulation_json(std::span<const SimulatedRun> runs);

}  // namespace rubato::app
