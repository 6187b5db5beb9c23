#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runs/experiment/answer/answer.hpp"

namespace rubato::test {

/// A cell of an experiment with one condition and one setting, by the final accuracies of its runs;
/// what is empty has diverged.
struct CellValues {
  std::string rule;
  std::vector<std::optional<double>> values;
  bool is_baseline = false;
};

/// The answer to the rules of an experiment on the trace "t", as many seeds as there are values.
inline Answer answer_to(const std::vector<CellValues>& cells,
                        std::optional<double> target = std::nullopt) {
  ExperimentPlan plan;
  plan.columns = {"trace", "rule"};
  plan.conditions = {"trace t"};
  plan.settings = {""};
  std::vector<RunResult> results;
  for (std::size_t seed = 0; seed < cells.front().values.size(); ++seed) {
    plan.seeds.push_back(fmt::to_string(seed + 1));
  }
  for (const auto& [rule, values, is_baseline] : cells) {
    PlannedCell cell{.labels = {"t", rule}, .is_baseline = is_baseline};
    for (std::size_t seed = 0; seed < values.size(); ++seed) {
      cell.runs.push_back(plan.runs.size());
      plan.runs.push_back({fmt::format("{}-{}", rule, seed + 1), RunConfiguration(), seed + 1});
      RunResult result{.end = values[seed] ? ResultEnd::finished : ResultEnd::diverged,
                       .final_value = values[seed],
                       .best_value = values[seed],
                       .epochs = 2};
      result.last = {.steps = 20, .samples = 2000};
      const double last = values[seed].value_or(0.2);
      result.curve = {{.point = {.steps = 10 + static_cast<std::int64_t>(seed), .samples = 1000},
                       .value = last - 0.01},
                      {.point = result.last, .value = last}};
      results.push_back(std::move(result));
    }
    plan.cells.push_back(std::move(cell));
  }
  const std::vector<Measure> measures(results.size(), Measure{.is_accuracy = true, .chance = 0.1});
  return answer_of(plan, results, measures, target);
}

}  // namespace rubato::test
