#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runs/experiment/answer/answer.hpp"

namespace rubato::test {

/// A cell of an experiment with one setting, by the final accuracies of its runs; what is empty has
/// diverged.
struct CellValues {
  std::string rule;
  std::vector<std::optional<double>> values;
  bool is_baseline = false;
  std::string trace = "t";
};

/// The plan and the results that an answer is made of.
struct AnswerParts {
  ExperimentPlan plan;
  std::vector<RunResult> results{};
  Measure measure{.is_accuracy = true, .chance = 0.1};

  [[nodiscard]] Answer answer(std::optional<double> target = std::nullopt,
                              std::optional<Margin> margin = std::nullopt) const {
    return answer_of(plan, results, std::vector<Measure>(results.size(), measure), target, margin);
  }
};

/// Those of rules on traces, with as many seeds as there are values; the cells of a trace follow
/// each other.
inline AnswerParts answer_parts(const std::vector<CellValues>& cells) {
  AnswerParts parts{.plan = {.columns = {"trace", "rule"},
                             .seeds = {},
                             .cells = {},
                             .runs = {},
                             .conditions = {},
                             .settings = {""}}};
  auto& [plan, results, measure] = parts;
  for (std::size_t seed = 0; seed < cells.front().values.size(); ++seed) {
    plan.seeds.push_back(fmt::to_string(seed + 1));
  }
  for (const auto& [rule, values, is_baseline, trace] : cells) {
    const std::string condition = "trace " + trace;
    if (plan.conditions.empty() || plan.conditions.back() != condition) {
      plan.conditions.push_back(condition);
    }
    PlannedCell cell{.labels = {trace, rule},
                     .condition = plan.conditions.size() - 1,
                     .is_baseline = is_baseline};
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
                        std::optional<double> target = std::nullopt,
                        std::optional<Margin> margin = std::nullopt) {
  return answer_parts(cells).answer(target, margin);
}

}  // namespace rubato::test
