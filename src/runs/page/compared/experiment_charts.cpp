#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "experiment_page.hpp"
#include "performance_profile.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "runs/page/thinned/buckets_json.hpp"

namespace rubato::page {

namespace {

using Cell = Answer::Cell;

constexpr const char* kValue = "value";
// Of all runs together, and of one.
constexpr std::size_t kCurvePoints = 16'000;
constexpr std::size_t kMostCurvePoints = 100;

// Accuracies are shares in results, and percent in answers.
double factor_of(const Answer& answer) {
  return answer.is_accuracy ? 100 : 1;
}

std::string unit_of(const Answer& answer) {
  return answer.is_accuracy ? "%" : "";
}

Json run_json(const Answer& answer, const Answer::Run& run) {
  Buckets curve(
      std::clamp<std::size_t>(kCurvePoints / answer.runs.size() / 2 * 2, 2, kMostCurvePoints));
  for (const auto& [point, value] : run.result.curve) {
    Position at;
    at[Axis::steps] = static_cast<double>(point.steps);
    at[Axis::samples] = static_cast<double>(point.samples);
    at[Axis::hours] = point.hours.value_or(0);
    at[Axis::money] = point.money.value_or(0);
    curve.begin_step(at);
    if (value) curve.add(kValue, *value);
  }
  return {{"name", fmt::format("seed {}", run.seed)},
          {"epochs",
           {{"width", curve.width()},
            {"axes", axes_json(curve)},
            {"numbers", {{kValue, numbers_json(curve, kValue, factor_of(answer))}}}}}};
}

// What the table of results says of a cell, under that name of its column.
std::string words_of(const std::vector<AnswerColumn<Cell>>& columns, const std::string& name,
                     const Cell& cell) {
  return std::ranges::find(columns, name, &AnswerColumn<Cell>::name)->words(cell);
}

// The finals of the seeds behind a mean.
Json finals_of(const Answer& answer, const Cell& cell) {
  Json finals = Json::array();
  for (const std::size_t member : cell.members) {
    const auto& final_value = answer.runs[member].result.final_value;
    if (final_value) finals.push_back(chart_number(factor_of(answer) * *final_value));
  }
  return finals;
}

Json interval(std::string label, const std::optional<Estimate>& estimate, std::string text,
              std::string verdict) {
  Json row{{"label", std::move(label)}, {"text", std::move(text)}, {"verdict", std::move(verdict)}};
  if (estimate) {
    row["mean"] = chart_number(estimate->mean);
    if (estimate->half_width) row["half"] = chart_number(*estimate->half_width);
  }
  return row;
}

std::vector<const Cell*> cells_of(const Answer& answer, std::size_t condition) {
  std::vector<const Cell*> cells;
  for (const Cell& cell : answer.cells) {
    if (cell.condition == condition) cells.push_back(&cell);
  }
  return cells;
}

bool is_baseline(std::span<const Cell* const> cells) {
  return std::ranges::all_of(cells, [](const Cell* cell) { return cell->is_baseline; });
}

Json interval_figure(const char* title, const std::string& condition, std::string unit,
                     std::string help) {
  return {{"type", "intervals"},     {"title", title},          {"group", condition},
          {"unit", std::move(unit)}, {"help", std::move(help)}, {"rows", Json::array()}};
}

Json values_figure(const Answer& answer, const std::vector<AnswerColumn<Cell>>& columns,
                   std::size_t condition) {
  Json figure = interval_figure(answer.is_accuracy ? "Final test accuracy" : "Final test loss",
                                answer.conditions[condition], unit_of(answer),
                                "mean, 95 % interval, each seed, and the verdict beside the best");
  for (const Cell* const cell : cells_of(answer, condition)) {
    Json row = interval(label_of(answer, *cell), cell->value, words_of(columns, "mean", *cell),
                        words_of(columns, "rank", *cell));
    row["points"] = finals_of(answer, *cell);
    figure["rows"].push_back(std::move(row));
  }
  return figure;
}

Json differences_figure(const Answer& answer, const std::vector<AnswerColumn<Cell>>& columns,
                        std::size_t condition) {
  Json figure =
      interval_figure("Difference to the baseline", answer.conditions[condition],
                      answer.is_accuracy ? "points" : "",
                      "seed by seed, 95 % interval, and the verdict after Holm's correction");
  figure["zero"] = true;
  for (const Cell* const cell : cells_of(answer, condition)) {
    if (!cell->to_baseline) continue;
    figure["rows"].push_back(interval(label_of(answer, *cell), cell->to_baseline->difference,
                                      words_of(columns, "difference", *cell),
                                      words_of(columns, "verdict", *cell)));
  }
  return figure;
}

// Of each condition but that of the baseline alone.
Json intervals_section(const Answer& answer) {
  const std::vector<AnswerColumn<Cell>> columns = cell_columns(answer);
  Json section{{"title", "Results with their intervals"}, {"figures", Json::array()}};
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    if (is_baseline(cells_of(answer, i)) && answer.conditions.size() > 1) continue;
    section["figures"].push_back(values_figure(answer, columns, i));
    Json differences = differences_figure(answer, columns, i);
    if (!differences["rows"].empty()) section["figures"].push_back(std::move(differences));
  }
  return section;
}

// Empty of a comparison under one condition.
Json profile_section(const Answer& answer) {
  const PerformanceProfiles all = performance_profiles(answer);
  Json section{{"title", "Over all traces"}, {"figures", Json::array()}};
  if (all.profiles.empty()) return section;
  Json rows = Json::array();
  for (const Profile& profile : all.profiles) {
    Json behind = Json::array();
    for (const double difference : profile.behind) behind.push_back(chart_number(difference));
    rows.push_back({{"label", profile.label}, {"behind", std::move(behind)}});
  }
  section["figures"].push_back(
      {{"type", "profile"},
       {"title", "How often a choice comes close to the best"},
       {"unit", "% of conditions and seeds"},
       {"help", fmt::format("performance profiles: on how many of the {} pairs of condition and "
                            "seed a choice ends at most so far behind the best of that pair",
                            all.problems)},
       {"across", answer.is_accuracy ? "points behind the best" : "test loss above the best"},
       {"problems", all.problems},
       {"rows", std::move(rows)}});
  return section;
}

bool has_curve(const Answer& answer, const Cell& cell) {
  return std::ranges::any_of(
      cell.members, [&](std::size_t member) { return !answer.runs[member].result.curve.empty(); });
}

// A small figure for each cell, with the baseline behind it.
Json curves_section(const Answer& answer) {
  Json section{{"title", "Learning curves"},
               {"help", "A curve for each seed; those of the baseline are grey."},
               {"figures", Json::array()}};
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    for (const Cell* const cell : cells_of(answer, i)) {
      if (!has_curve(answer, *cell)) continue;
      Json context = Json::array();
      for (const Cell& other : answer.cells) {
        if (!other.is_baseline || other.setting != cell->setting || cell->is_baseline) continue;
        for (const std::size_t member : other.members) context.push_back(member);
      }
      section["figures"].push_back(
          {{"type", "lines"},
           {"title", label_of(answer, *cell)},
           {"group", answer.conditions[i]},
           {"unit", unit_of(answer)},
           {"small", true},
           {"runs", cell->members},
           {"context", std::move(context)},
           {"curves",
            {{{"of", "epochs"},
              {"key", kValue},
              {"label", answer.is_accuracy ? "test accuracy" : "test loss"}}}}});
    }
  }
  return section;
}

}  // namespace

Json charts_of(const Answer& answer) {
  Json json{{"axes", axis_rows_json()}, {"runs", Json::array()}, {"sections", Json::array()}};
  for (const Answer::Run& run : answer.runs) json["runs"].push_back(run_json(answer, run));
  for (Json section :
       {intervals_section(answer), profile_section(answer), curves_section(answer)}) {
    if (!section["figures"].empty()) json["sections"].push_back(std::move(section));
  }
  return json;
}

}  // namespace rubato::page
