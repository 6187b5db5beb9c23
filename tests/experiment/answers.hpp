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

/// The plan and the results that an answer is made of.
struct AnswerParts {
  ExperimentPlan plan;
  std::vector<RunResult> results{};
  Measure measure{.is_accuracy = true, .chance = 0.1};

  [[nodiscard]] Answer answer(std::optional<double> target = std::nullopt) const {
    return answer_of(plan, results, std::vector<Measure>(results.size(), measure), target);
  }
};

/// Those of rules on the trace "t", with as many seeds as there are values.
inline AnswerParts answer_parts(const std::vector<CellValues>& cells) {
  AnswerParts parts{.plan = {.columns = {"trace", "rule"},
                             .seeds = {},
                             .cells = {},
                             .runs = {},
                             .conditions = {"trace t"},
                             .settings = {""}}};
  auto& [plan, results, measure] = parts;
  for (std::size_t seed = 0; seed < cells.front().values.size(); ++seed) {
    plan.seeds.push_back(fmt::to_string(seed + 1));
  }
  for (const auto& [rule, values, is_baseline] : cells) {
    PlannedCell cell{.labels = {"t", rule}, .is_baseline = is_baseline};
    for (std::size_t seed = 0; seed < values.size(); ++seed) {
      cell.runs.push_back(plan.runs.size());
      plan.runs.push_back({fmt::format("{}-{}", rule, seed + 1), RunConfiguration(), seed + 1});
      const double last = values[seed].value_or(0.2);
      const RunPoint end{.steps = 20, .samples = 2000};
      results.push_back(
          {.end = values[seed] ? ResultEnd::finished : ResultEnd::diverged,
           .final_value = values[seed],
           .best_value = values[seed],
           .epochs = 2,
           .last = end,
           .curve = {
               {{.steps = 10 + static_cast<std::int64_t>(seed), .samples = 1000}, last - 0.01},
               {end, last}}});
    }
    plan.cells.push_back(std::move(cell));
  }
  return parts;
}

inline Answer answer_to(const std::vector<CellValues>& cells,
                        std::optional<double> target = std::nullopt) {
  return answer_parts(cells).answer(target);
}

}  // namespace rubato::test
