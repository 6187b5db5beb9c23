#include "performance_profile.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runs/experiment/answer/answer_columns.hpp"

namespace rubato::page {

namespace {

// A condition and a seed.
using Problem = std::pair<std::size_t, std::uint64_t>;

}  // namespace

std::string label_of(const Answer& answer, const Answer::Cell& cell) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < cell.labels.size(); ++i) {
    if (!is_condition(answer.columns[i])) labels.push_back(cell.labels[i]);
  }
  return fmt::to_string(fmt::join(labels, " "));
}

PerformanceProfiles performance_profiles(const Answer& answer) {
  std::set<std::size_t> conditions;
  for (const Answer::Cell& cell : answer.cells) {
    if (!cell.is_baseline) conditions.insert(cell.condition);
  }
  // Values for which larger is better; empty for a run without a result.
  std::map<Problem, std::vector<std::pair<std::string, std::optional<double>>>> problems;
  std::vector<std::string> labels;
  for (const Answer::Cell& cell : answer.cells) {
    if (!conditions.contains(cell.condition)) continue;
    const std::string label = label_of(answer, cell);
    if (std::ranges::find(labels, label) == labels.end()) labels.push_back(label);
    for (const std::size_t member : cell.members) {
      const Answer::Run& run = answer.runs[member];
      std::optional<double> value = run.result.final_value;
      if (value) value = answer.is_accuracy ? 100 * *value : -*value;
      problems[{cell.condition, run.seed}].emplace_back(label, value);
    }
  }
  if (conditions.size() < 2 || labels.size() < 2) return {};
  PerformanceProfiles all{.problems = problems.size()};
  for (const std::string& label : labels) all.profiles.push_back({.label = label});
  for (const auto& [problem, values] : problems) {
    // An empty value compares less than any other.
    const std::optional<double> best =
        std::ranges::max(values, {}, [](const auto& value) { return value.second; }).second;
    for (const auto& [label, value] : values) {
      if (!value) continue;
      std::ranges::find(all.profiles, label, &Profile::label)->behind.push_back(*best - *value);
    }
  }
  for (Profile& profile : all.profiles) std::ranges::sort(profile.behind);
  return all;
}

}  // namespace rubato::page
