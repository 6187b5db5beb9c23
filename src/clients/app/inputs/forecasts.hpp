#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rubato/steps/plan.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/text/output_fields.hpp"
#include "base/core/text/text.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato::app {

/// Options of the output of a plan.
struct PlanView {
  Assignment assignment = Assignment::contiguous;
  std::uint64_t seed = 42;
  /// True if the JSON lists the samples of every minibatch.
  bool indices = false;
  /// The prices of the trace, in half a line (prices_text()); empty if it has none.
  std::string prices{};
};

/// Formats a plan as JSON. The minibatches of "indices" are in the order of the assignments. An
/// empty list stands for a core that is idle in that step or, if the trace changes the number of
/// cores, does not exist then.
[[nodiscard]] std::string plan_json(const PlanOptions& plan, std::span<const EpochPlan> epochs,
                                    const PlanView& view);
/// The JSON Schema of plan_json().
[[nodiscard]] nlohmann::ordered_json plan_schema();

/// Formats a plan as a table with a line for every epoch, and says how long the trace of `planner`
/// lasts. The utilisation is the share of core-substeps that do work, if every core waits for the
/// one with the most substeps. The median of an even number of batch sizes is the smaller one in
/// the middle.
[[nodiscard]] std::string plan_table(const Planner& planner, std::span<const EpochPlan> epochs,
                                     const PlanView& view, LineWidth width = {});

/// A training compared with the optimum for it.
struct Regret {
  /// The optimum's money, if a schedule was found that ends by the deadline; whether the search has
  /// come to its end; and the money below which there is no schedule of any kind.
  std::optional<double> optimum{};
  bool proven = false;
  std::optional<double> least{};
  /// True if the training ended after its deadline, or not at all.
  bool missed = false;
  /// The money beyond the optimum, also in percent of it if it costs anything; empty if the
  /// training missed its deadline or there is no optimum.
  std::optional<double> money{};
  std::optional<double> percent{};
};

/// One of the simulated trainings.
struct SimulatedRun {
  /// The options that differ between the runs, with the values of this run.
  std::vector<std::pair<std::string, std::string>> options{};
  SimulatedTraining training{};
  std::optional<Regret> regret{};
};

/// A table of rows with options, of which there must be at least one: a column for each of them,
/// which all rows must have, and the fields that are columns.
template <class Row>
[[nodiscard]] std::string table_with_options(const OutputFields<Row>& fields,
                                             std::span<const Row> rows, LineWidth width) {
  const auto& options = rows.front().options;
  OutputFields<Row> all;
  for (std::size_t i = 0; i < options.size(); ++i) {
    all.push_back(
        {options[i].first, Column::left, [i](const Row& row) { return row.options[i].second; }});
  }
  all.insert(all.end(), fields.begin(), fields.end());
  return table_of(std::move(all), rows, options.size()).text(width);
}

/// A table with a line for each run, as table_with_options().
[[nodiscard]] std::string simulation_table(std::span<const SimulatedRun> runs,
                                           LineWidth width = {});
/// The same as a list in JSON, with the modelled time as in the metrics.
[[nodiscard]] std::string simulation_json(std::span<const SimulatedRun> runs);
[[nodiscard]] JsonForm<std::span<const SimulatedRun>> simulation_form();

}  // namespace rubato::app
