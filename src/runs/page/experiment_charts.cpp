// charts_of() makes the JSON that web/main.js draws: curves in `runs`, and sections of figures of
// the types intervals, rates, profile and lines. The curves of the experiment's runs come first and
// in their order, so that indices of Answer::runs are indices of curves; means_section() appends
// the mean curves. The points of a curve become fewer the more curves there are, so that the page
// stays small. Intervals and means of a condition that only a baseline has are left out unless it
// is the only one.

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "buckets.hpp"
#include "experiment_page.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "runs/experiment/answer/rate_curves.hpp"

namespace rubato::page {

namespace {

using Cell = Answer::Cell;

constexpr const char* kValue = "value";
// Limits of the points of all curves together, and of one curve.
constexpr std::size_t kCurvePoints = 16'000;
constexpr std::size_t kMostCurvePoints = 100;

// Accuracies are shares in results, and percent in answers.
double factor_of(const Answer& answer) {
  return answer.is_accuracy ? 100 : 1;
}

std::string unit_of(const Answer& answer) {
  return answer.is_accuracy ? "%" : "";
}

Position position_of(const RunPoint& point) {
  Position at;
  at[Axis::steps] = static_cast<double>(point.steps);
  at[Axis::samples] = static_cast<double>(point.samples);
  at[Axis::hours] = point.hours.value_or(0);
  at[Axis::money] = point.money.value_or(0);
  return at;
}

// An empty curve with as many points as a page with this many curves has room for.
Buckets curve_of(std::size_t curves) {
  return Buckets(std::clamp<std::size_t>(kCurvePoints / curves / 2 * 2, 2, kMostCurvePoints));
}

Json epochs_json(const Answer& answer, const Buckets& curve) {
  return {{"width", curve.width()},
          {"axes", axes_json(curve)},
          {"numbers", {{kValue, numbers_json(curve, kValue, factor_of(answer))}}}};
}

Json run_json(const Answer& answer, const Answer::Run& run) {
  Buckets curve = curve_of(answer.runs.size());
  for (const auto& [point, value] : run.result.curve) {
    curve.begin_step(position_of(point));
    if (value) curve.add(kValue, *value);
  }
  return {{"name", fmt::format("seed {}", run.seed)}, {"epochs", epochs_json(answer, curve)}};
}

// The mean curve of a cell's seeds, with the smallest and largest value at each epoch. It ends
// where the first seed has no value: the mean of the survivors would be biased towards good
// results.
Json mean_json(const Answer& answer, const Cell& cell, std::size_t color) {
  std::size_t epochs = std::numeric_limits<std::size_t>::max();
  for (const std::size_t member : cell.members) {
    const auto& curve = answer.runs[member].result.curve;
    const auto end = std::ranges::find_if(curve, [](const auto& epoch) { return !epoch.value; });
    epochs = std::min(epochs, static_cast<std::size_t>(end - curve.begin()));
  }
  Buckets means = curve_of(answer.runs.size());
  for (std::size_t i = 0; i < epochs; ++i) {
    Position at;
    for (const std::size_t member : cell.members) {
      const Position of_seed = position_of(answer.runs[member].result.curve[i].point);
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        at.values.at(axis) += of_seed.values.at(axis) / static_cast<double>(cell.members.size());
      }
    }
    means.begin_step(at);
    for (const std::size_t member : cell.members) {
      means.add(kValue, *answer.runs[member].result.curve[i].value);
    }
  }
  return {{"name", label_of(answer, cell)},
          {"color", color},
          {"baseline", cell.is_baseline},
          {"epochs", epochs_json(answer, means)}};
}

// The text of a cell in the column of this name in the table of results.
std::string words_of(const std::vector<AnswerColumn<Cell>>& columns, const std::string& name,
                     const Cell& cell) {
  return std::ranges::find(columns, name, &AnswerColumn<Cell>::name)->words(cell);
}

// Adds the values and the numbers of all seeds to the row for which `value` returns one.
template <class Value>
void put_seeds(const Answer& answer, const Cell& cell, const Value& value, Json& row) {
  row["points"] = Json::array();
  row["seeds"] = Json::array();
  for (std::size_t i = 0; i < cell.members.size(); ++i) {
    const std::optional<double> number = value(i);
    if (!number) continue;
    row["points"].push_back(chart_number(*number));
    row["seeds"].push_back(answer.runs[cell.members[i]].seed);
  }
}

// The final value of the run with the given index of its seed.
std::optional<double> final_of(const Answer& answer, const Cell& cell, std::size_t seed) {
  const auto& value = answer.runs[cell.members.at(seed)].result.final_value;
  return value ? std::optional(factor_of(answer) * *value) : std::nullopt;
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

bool is_baseline(std::span<const Cell* const> cells) {
  return std::ranges::all_of(cells, [](const Cell* cell) { return cell->is_baseline; });
}

// The baseline that all cells of a condition are compared with; null if there are several.
const Cell* common_baseline(const Answer& answer, std::size_t condition) {
  const Cell* common = nullptr;
  for (const Cell& other : answer.cells) {
    const bool compared = std::ranges::any_of(answer.cells, [&](const Cell& cell) {
      return cell.condition == condition && cell.setting == other.setting;
    });
    if (!other.is_baseline || !compared) continue;
    if (common != nullptr) return nullptr;
    common = &other;
  }
  return common;
}

Json medians_json(const Answer::ToTarget& target) {
  const std::array<std::pair<const char*, std::optional<double>>, 4> medians{
      {{"steps", target.steps},
       {"samples", target.samples},
       {"hours", target.hours},
       {"money", target.money}}};
  Json json = Json::object();
  for (const auto& [axis, median] : medians) {
    if (median) json[axis] = chart_number(*median);
  }
  return json;
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
                                "mean, 95 % interval, each seed, and the verdict against the best");
  const Cell* const baseline = common_baseline(answer, condition);
  if (baseline != nullptr && baseline->value) {
    figure["reference"] = chart_number(baseline->value->mean);
  }
  for (const Cell* const cell : answer.cells_of(condition)) {
    Json row = interval(label_of(answer, *cell), cell->value, words_of(columns, "mean", *cell),
                        words_of(columns, "rank", *cell));
    row["baseline"] = cell->is_baseline;
    put_seeds(
        answer, *cell, [&](std::size_t seed) { return final_of(answer, *cell, seed); }, row);
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
  for (const Cell* const cell : answer.cells_of(condition)) {
    if (!cell->to_baseline) continue;
    const auto baseline = std::ranges::find_if(answer.cells, [&](const Cell& other) {
      return other.is_baseline && other.setting == cell->setting;
    });
    Json row =
        interval(label_of(answer, *cell), cell->to_baseline->difference,
                 words_of(columns, "difference", *cell), words_of(columns, "verdict", *cell));
    put_seeds(
        answer, *cell,
        [&](std::size_t seed) {
          const auto own = final_of(answer, *cell, seed);
          const auto other = final_of(answer, *baseline, seed);
          return own && other ? std::optional(*own - *other) : std::nullopt;
        },
        row);
    figure["rows"].push_back(std::move(row));
  }
  return figure;
}

// The cost of reaching the target on each axis, for each seed and as the median. Empty if no run
// reached the target.
std::optional<Json> costs_figure(const Answer& answer, std::size_t condition) {
  if (!answer.target) return std::nullopt;
  bool any = false;
  Json figure = interval_figure(
      "Cost to target", answer.conditions[condition], "",
      fmt::format("until the first epoch that reaches {:g}{}; a run that never does counts as more "
                  "than any",
                  *answer.target, answer.is_accuracy ? " % test accuracy" : " test loss"));
  figure["costs"] = true;
  const Cell* const baseline = common_baseline(answer, condition);
  if (baseline != nullptr && baseline->to_target) {
    figure["references"] = medians_json(*baseline->to_target);
  }
  for (const Cell* const cell : answer.cells_of(condition)) {
    if (!cell->to_target) continue;
    const Answer::ToTarget& target = *cell->to_target;
    Json row = interval(label_of(answer, *cell), std::nullopt,
                        fmt::format("{} of {} reached it", target.reached, cell->runs), kNothing);
    row["baseline"] = cell->is_baseline;
    row["seeds"] = Json::array();
    row["costs"] = Json::object();
    for (const std::size_t member : cell->members) {
      const auto& point = answer.runs[member].to_target;
      if (!point) continue;
      row["seeds"].push_back(answer.runs[member].seed);
      const Position at = position_of(*point);
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        if (at.values.at(axis) == 0) continue;
        row["costs"][std::string(kAxisRows.at(axis).key)].push_back(
            chart_number(at.values.at(axis)));
      }
    }
    row["medians"] = medians_json(target);
    any = any || target.reached > 0;
    figure["rows"].push_back(std::move(row));
  }
  return any ? std::optional(std::move(figure)) : std::nullopt;
}

// Intervals for each condition except one that only the baseline has.
Json intervals_section(const Answer& answer) {
  const std::vector<AnswerColumn<Cell>> columns = cell_columns(answer);
  Json section{{"title", "Results with their intervals"}, {"figures", Json::array()}};
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    if (is_baseline(answer.cells_of(i)) && answer.conditions.size() > 1) continue;
    section["figures"].push_back(values_figure(answer, columns, i));
    Json differences = differences_figure(answer, columns, i);
    if (!differences["rows"].empty()) section["figures"].push_back(std::move(differences));
    if (auto costs = costs_figure(answer, i)) section["figures"].push_back(*std::move(costs));
  }
  return section;
}

// The section has no figures without a summary of all conditions.
Json profile_section(const Answer& answer) {
  Json section{{"title", "All conditions together"}, {"figures", Json::array()}};
  if (!answer.together) return section;
  const AllConditions& all = *answer.together;
  Json rows = Json::array();
  for (const AllConditions::Choice& choice : all.choices) {
    Json behind = Json::array();
    for (const double difference : choice.behind) behind.push_back(chart_number(difference));
    rows.push_back(
        {{"label", fmt::to_string(fmt::join(choice.labels, " "))}, {"behind", std::move(behind)}});
  }
  section["figures"].push_back(
      {{"type", "profile"},
       {"title", "How often a choice comes close to the best"},
       {"unit", "% of conditions and seeds"},
       {"help",
        fmt::format("performance profiles: the share of the {} pairs of condition and "
                    "seed for which a choice ends at most this far behind the best. At 0 it is how "
                    "often the choice is the best; a curve that is higher further right "
                    "is the safer choice, and one that stays below 100 % has lost runs",
                    all.pairs)},
       {"across", answer.is_accuracy ? "points behind the best" : "test loss above the best"},
       {"problems", all.pairs},
       {"rows", std::move(rows)}});
  return section;
}

// Scores over rates; without a mean where a run is lost.
Json rate_points(std::span<const RateCurve::Point> points) {
  Json json = Json::array();
  for (const auto& [factor, rate, values, score, lost] : points) {
    Json& point = json.emplace_back(Json{{"rate", rate}, {"lost", lost}});
    if (!score) continue;
    const auto [low, high] = std::ranges::minmax(values);
    point["mean"] = chart_number(score->mean);
    point["low"] = chart_number(low);
    point["high"] = chart_number(high);
  }
  return json;
}

Json rates_figure(bool is_accuracy, std::string title, std::string group, std::string across) {
  return {{"type", "rates"},
          {"title", std::move(title)},
          {"group", std::move(group)},
          {"across", std::move(across)},
          {"value", is_accuracy ? "test accuracy" : "test loss"},
          {"unit", is_accuracy ? "%" : ""},
          {"least", !is_accuracy},
          {"rows", Json::array()}};
}

// The curve of what was tuned; empty if its values are not positive numbers.
std::optional<Json> tuning_figure(const TuningAnswer& tuning) {
  const std::vector<RateCurve::Point> points = points_of(tuning);
  if (points.empty()) return std::nullopt;
  Json figure = rates_figure(tuning.is_accuracy, "What was tuned", tuning.setting, tuning.option);
  figure["rows"].push_back({{"label", "the runs that tune"}, {"points", rate_points(points)}});
  figure["taken"] = std::stod(tuning.values[tuning.best].value);
  return std::make_optional(std::move(figure));
}

// Scores over the learning rate: of the runs that tune, and of the comparison at other rates.
Json rates_section(const Answer& answer, std::span<const TuningAnswer> tuning) {
  Json section{
      {"title", "Learning rates"},
      {"help",
       "The area reaches from the least seed to the greatest; a cross has a lost run, or a loss "
       "above a thousand times the least."},
      {"figures", Json::array()}};
  for (const TuningAnswer& tuned : tuning) {
    if (auto figure = tuning_figure(tuned)) section["figures"].push_back(*std::move(figure));
  }
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    Json figure = rates_figure(answer.is_accuracy, "Scores over the learning rate",
                               answer.conditions[i], "learning rate");
    for (const RateCurve& curve : answer.rates) {
      const Cell& cell = answer.cells[curve.cell];
      if (cell.condition != i) continue;
      figure["rows"].push_back({{"label", label_of(answer, cell)},
                                {"baseline", cell.is_baseline},
                                {"points", rate_points(curve.points)}});
    }
    if (!figure["rows"].empty()) section["figures"].push_back(std::move(figure));
  }
  return section;
}

bool has_curve(const Answer& answer, const Cell& cell) {
  return std::ranges::any_of(
      cell.members, [&](std::size_t member) { return !answer.runs[member].result.curve.empty(); });
}

Json curve_figure(const Answer& answer, std::string title, std::size_t condition) {
  const char* const value = answer.is_accuracy ? "test accuracy" : "test loss";
  return {{"type", "lines"},
          {"title", std::move(title)},
          {"group", answer.conditions[condition]},
          {"value", value},
          {"unit", unit_of(answer)},
          {"runs", Json::array()},
          {"curves", {{{"of", "epochs"}, {"key", kValue}, {"label", value}}}}};
}

// A figure for each condition with the mean curves of all its cells, including the baseline's.
// Appends these curves to the runs of `charts`.
Json means_section(const Answer& answer, Json& charts) {
  Json section{{"title", "Mean learning curves"},
               {"help", "The mean of the seeds; the area reaches from the least to the greatest."},
               {"figures", Json::array()}};
  // A choice has the same color under each condition.
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    const std::vector<const Cell*> own = answer.cells_of(i);
    if (is_baseline(own) && answer.conditions.size() > 1) continue;
    Json figure = curve_figure(answer, "Mean of the seeds", i);
    std::vector<const Cell*> cells = own;
    for (const Cell& other : answer.cells) {
      const bool compared = std::ranges::any_of(
          own, [&](const Cell* cell) { return cell->setting == other.setting; });
      if (other.is_baseline && other.condition != i && compared) cells.push_back(&other);
    }
    for (const Cell* const cell : cells) {
      if (!has_curve(answer, *cell)) continue;
      const std::string label = label_of(answer, *cell);
      const auto found = std::ranges::find(labels, label);
      const auto color = static_cast<std::size_t>(found - labels.begin());
      if (found == labels.end()) labels.push_back(label);
      figure["runs"].push_back(charts["runs"].size());
      charts["runs"].push_back(mean_json(answer, *cell, color));
    }
    if (!figure["runs"].empty()) section["figures"].push_back(std::move(figure));
  }
  return section;
}

// A small figure for each cell, with the baseline's curves in the background.
Json curves_section(const Answer& answer) {
  Json section{{"title", "Learning curves"},
               {"help", "A curve for each seed; those of the baseline are grey."},
               {"figures", Json::array()}};
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    for (const Cell* const cell : answer.cells_of(i)) {
      if (!has_curve(answer, *cell)) continue;
      Json context = Json::array();
      for (const Cell& other : answer.cells) {
        if (!other.is_baseline || other.setting != cell->setting || cell->is_baseline) continue;
        for (const std::size_t member : other.members) context.push_back(member);
      }
      Json figure = curve_figure(answer, label_of(answer, *cell), i);
      figure["small"] = true;
      figure["runs"] = cell->members;
      figure["context"] = std::move(context);
      section["figures"].push_back(std::move(figure));
    }
  }
  return section;
}

}  // namespace

Json charts_of(const Answer& answer, std::span<const TuningAnswer> tuning) {
  Json json{{"axes", axis_rows_json()}, {"runs", Json::array()}, {"sections", Json::array()}};
  for (const Answer::Run& run : answer.runs) json["runs"].push_back(run_json(answer, run));
  for (Json section :
       {intervals_section(answer), rates_section(answer, tuning), profile_section(answer),
        means_section(answer, json), curves_section(answer)}) {
    if (!section["figures"].empty()) json["sections"].push_back(std::move(section));
  }
  return json;
}

}  // namespace rubato::page
