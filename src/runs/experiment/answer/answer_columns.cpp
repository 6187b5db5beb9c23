#include "answer_columns.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/core/text/csv.hpp"
#include "base/core/text/json.hpp"
#include "runs/config/run_option.hpp"
#include "runs/experiment/design/value_list.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;
using Cell = Answer::Cell;
using Run = Answer::Run;
using Comparison = Answer::Comparison;

// --- Text for printed tables ---

std::string with_interval(std::string mean, const Estimate& estimate, bool is_accuracy) {
  if (!estimate.half_width) return mean;
  return fmt::format("{} ± {}", mean, value_in_words(*estimate.half_width, is_accuracy));
}

std::int64_t count_of(const Answer& answer, const Cell& cell, ResultEnd end) {
  return std::ranges::count_if(
      cell.members, [&](std::size_t member) { return answer.runs[member].result.end == end; });
}

// Examples: "73.00 ± 21.60", "5 of 5 diverged", "24.78 ± 37.04 (3 of 5 unlearned)".
std::string result_in_words(const Answer& answer, const Cell& cell) {
  std::vector<std::string> ends;
  for (const ResultEndRow& end : kResultEnds) {
    const std::int64_t count = is_lost(end.value) ? count_of(answer, cell, end.value) : 0;
    if (count > 0) ends.push_back(fmt::format("{} of {} {}", count, cell.runs, end.name));
  }
  std::string words = fmt::to_string(fmt::join(ends, ", "));
  if (!cell.value) return words;
  const std::string value = with_interval(value_in_words(cell.value->mean, answer.is_accuracy),
                                          *cell.value, answer.is_accuracy);
  return words.empty() ? value : fmt::format("{} ({})", value, words);
}

std::string difference_in_words(const Answer& answer, const Cell& cell) {
  if (!cell.to_baseline) return kNothing;
  const Estimate& difference = cell.to_baseline->difference;
  const std::string mean = value_in_words(difference.mean, answer.is_accuracy);
  return with_interval(mean.starts_with('-') ? mean : '+' + mean, difference, answer.is_accuracy);
}

std::string p_in_words(const Cell& cell) {
  constexpr double kSmallest = 0.001;
  if (!cell.to_baseline || !cell.to_baseline->adjusted) return kNothing;
  const double p = *cell.to_baseline->adjusted;
  return p < kSmallest ? fmt::format("<{}", kSmallest) : fmt::format("{:.3f}", p);
}

template <std::optional<Verdict> Cell::*verdict>
std::string verdict_in_words(const Cell& cell) {
  return std::string(cell.*verdict ? name_of(*(cell.*verdict)) : kNothing);
}

// --- Values for programs ---

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Follows the members of `path` from `value`, one after the other; null if an optional on the way
// is empty.
template <class T, class... Path>
Json json_at(const T& value, Path... path) {
  if constexpr (kIsOptional<T>) {
    return value ? json_at(*value, path...) : Json();
  } else if constexpr (sizeof...(Path) > 0) {
    return [&](auto first, auto... rest) {
      return json_at(std::invoke(first, value), rest...);
    }(path...);
  } else if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else {
    return value;
  }
}
template <class... Path>
auto at(Path... path) {
  return [path...](const auto& row) { return json_at(row, path...); };
}

template <class Row>
void append(std::vector<AnswerColumn<Row>>& columns,
            std::initializer_list<AnswerColumn<Row>> more) {
  columns.insert(columns.end(), more);
}

template <class Row>
void append_labels(std::vector<AnswerColumn<Row>>& columns, const Answer& answer) {
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    append<Row>(columns, {{answer.columns[i], "/" + answer.columns[i], "the value of the option",
                           [i](const Row& row) { return Json(row.labels[i]); }}});
  }
}

void append_ends(std::vector<AnswerColumn<Cell>>& columns, const Answer& answer) {
  for (const ResultEndRow& row : kResultEnds) {
    std::string name(row.name);
    std::ranges::replace(name, ' ', '_');
    const auto count = [&answer, end = row.value](const Cell& cell) {
      return Json(count_of(answer, cell, end));
    };
    const char* const help =
        row.value == kResultEnds.front().value ? "runs that ended this way" : "";
    append<Cell>(columns, {{name, fmt::format("/ends/{}", row.name), help, count}});
  }
}

}  // namespace

std::string value_in_words(double value, bool is_accuracy) {
  return is_accuracy ? fmt::format("{:.2f}", value) : fmt::format("{:.4g}", value);
}

std::string amount_in_words(const Json& value) {
  if (value.is_null()) return kNothing;
  const auto number = value.get<double>();
  return number >= 1000 ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}

std::vector<AnswerColumn<Cell>> cell_columns(const Answer& answer) {
  constexpr auto kResults = AnswerTable::results;
  constexpr auto kCosts = AnswerTable::costs;
  const auto clock = answer.has_clock() ? kCosts : AnswerTable::none;
  const auto target = answer.target ? kCosts : AnswerTable::none;
  const auto target_clock = answer.target ? clock : AnswerTable::none;
  const std::string reach =
      fmt::format("reach {:g}{}", answer.target.value_or(0), answer.is_accuracy ? " %" : "");

  std::vector<AnswerColumn<Cell>> columns;
  append_labels(columns, answer);
  append<Cell>(columns,
               {{"condition", "/condition",
                 "what a user is given and does not choose; each condition has a best cell",
                 [&](const Cell& cell) { return Json(answer.conditions[cell.condition]); }},
                {"baseline", "/baseline", "whether it is a baseline", at(&Cell::is_baseline)},
                {"runs", "/runs", "how many runs it has, one for each seed", at(&Cell::runs)}});
  append_ends(columns, answer);
  append<Cell>(
      columns,
      {{"mean", "/value/mean",
        "mean of the final test accuracies in percent, or of the test losses",
        at(&Cell::value, &Estimate::mean), kResults,
        answer.is_accuracy ? "accuracy %" : "test loss",
        [&](const Cell& cell) { return result_in_words(answer, cell); }},
       {"deviation", "/value/deviation",
        "their standard deviation, and half of the 95 % interval of the mean",
        at(&Cell::value, &Estimate::deviation)},
       {"half_width", "/value/half_width", "", at(&Cell::value, &Estimate::half_width)},
       {"rank", "/rank", "verdict against the best cell of the condition", at(&Cell::rank),
        kResults, "rank", verdict_in_words<&Cell::rank>},
       {"difference", "/to_baseline/mean", "mean of the differences to the baseline, seed by seed",
        at(&Cell::to_baseline, &Comparison::difference, &Estimate::mean), kResults,
        "to the baseline", [&](const Cell& cell) { return difference_in_words(answer, cell); }},
       {"difference_deviation", "/to_baseline/deviation",
        "their standard deviation, and half of the 95 % interval of the mean",
        at(&Cell::to_baseline, &Comparison::difference, &Estimate::deviation)},
       {"difference_half_width", "/to_baseline/half_width", "",
        at(&Cell::to_baseline, &Comparison::difference, &Estimate::half_width)},
       {"p", "/to_baseline/p", "p-value of the paired t-test",
        at(&Cell::to_baseline, &Comparison::p)},
       {"p_holm", "/to_baseline/p_holm",
        "the same after Holm's correction for all comparisons of the answer",
        at(&Cell::to_baseline, &Comparison::adjusted), kResults, "p (Holm)", p_in_words},
       {"verdict", "/verdict", "verdict against the baseline", at(&Cell::verdict), kResults,
        "verdict", verdict_in_words<&Cell::verdict>},
       {"best_difference", "/to_best/mean",
        "the same for the differences to the best cell of the condition, corrected within the "
        "condition",
        at(&Cell::to_best, &Comparison::difference, &Estimate::mean)},
       {"best_difference_deviation", "/to_best/deviation", "",
        at(&Cell::to_best, &Comparison::difference, &Estimate::deviation)},
       {"best_difference_half_width", "/to_best/half_width", "",
        at(&Cell::to_best, &Comparison::difference, &Estimate::half_width)},
       {"best_p", "/to_best/p", "", at(&Cell::to_best, &Comparison::p)},
       {"best_p_holm", "/to_best/p_holm", "", at(&Cell::to_best, &Comparison::adjusted)},
       {"steps", "/spent/steps", "spent on average by the runs that have a final value",
        at(&Cell::spent, &Answer::Spent::steps), kCosts, "steps"},
       {"samples", "/spent/samples", "", at(&Cell::spent, &Answer::Spent::samples), kCosts,
        "samples"},
       {"epochs", "/spent/epochs", "", at(&Cell::spent, &Answer::Spent::epochs)},
       {"iterations", "/spent/iterations", "the same, scale-invariant, as the rule counts them",
        at(&Cell::spent, &Answer::Spent::iterations), kCosts, "iterations"},
       {"batch_sizes", "/elasticity/batch_sizes",
        "how many different batch sizes a run had, at most; the last step of an epoch does not "
        "count",
        at(&Cell::elasticity, &Elasticity::batch_sizes), kCosts, "batch sizes"},
       {"least_batch", "/elasticity/least_batch", "the smallest and the largest of them",
        at(&Cell::elasticity, &Elasticity::least_batch)},
       {"most_batch", "/elasticity/most_batch", "", at(&Cell::elasticity, &Elasticity::most_batch)},
       {"fewest_cores", "/elasticity/fewest_cores", "the fewest and the most cores of a step",
        at(&Cell::elasticity, &Elasticity::fewest_cores)},
       {"most_cores", "/elasticity/most_cores", "", at(&Cell::elasticity, &Elasticity::most_cores)},
       {"hours", "/spent/hours", "spent on average on the virtual clock",
        at(&Cell::spent, &Answer::Spent::hours), clock, "hours"},
       {"money", "/spent/money", "", at(&Cell::spent, &Answer::Spent::money), clock, "money"},
       {"reached_target", "/to_target/reached", "how many runs reached `--target`",
        at(&Cell::to_target, &Answer::ToTarget::reached), target, reach,
        [](const Cell& cell) {
          return fmt::format("{} of {}", cell.to_target->reached, cell.runs);
        }},
       {"target_steps", "/to_target/median_steps",
        "median of the cost of reaching it; a run that never did counts as more than any",
        at(&Cell::to_target, &Answer::ToTarget::steps), target, "after steps"},
       {"target_samples", "/to_target/median_samples", "",
        at(&Cell::to_target, &Answer::ToTarget::samples)},
       {"target_hours", "/to_target/median_hours", "",
        at(&Cell::to_target, &Answer::ToTarget::hours), target_clock, "after hours"},
       {"target_money", "/to_target/median_money", "",
        at(&Cell::to_target, &Answer::ToTarget::money), target_clock, "after money"}});
  return columns;
}

std::vector<AnswerColumn<Run>> run_columns(const Answer& answer) {
  std::vector<AnswerColumn<Run>> columns{
      {"name", "/name", "its folder in `runs/`", at(&Run::name)}};
  append_labels(columns, answer);
  append<Run>(
      columns,
      {{"seed", "/seed", "its seed", at(&Run::seed)},
       {"baseline", "/baseline", "whether it is a run of a baseline", at(&Run::is_baseline)},
       {"end", "/end", "how it ended", at(&Run::result, &RunResult::end)},
       {"", "/reason", "why, in its own words, if it did not end well",
        [](const Run& run) { return or_null(run.result.reason); }},
       {"final", "/final", "the last test accuracy, as a share, or test loss",
        at(&Run::result, &RunResult::final_value)},
       {"best", "/best", "the best of all epochs", at(&Run::result, &RunResult::best_value)},
       {"epochs", "/spent/epochs", "what it spent", at(&Run::result, &RunResult::epochs)},
       {"steps", "/spent/steps", "", at(&Run::result, &RunResult::last, &RunPoint::steps)},
       {"samples", "/spent/samples", "", at(&Run::result, &RunResult::last, &RunPoint::samples)},
       {"iterations", "/spent/iterations", "the same, scale-invariant, as the rule counts them",
        at(&Run::result, &RunResult::iterations)},
       {"hours", "/spent/hours", "the same, on the virtual clock",
        at(&Run::result, &RunResult::last, &RunPoint::hours)},
       {"money", "/spent/money", "", at(&Run::result, &RunResult::last, &RunPoint::money)},
       {"target_steps", "/to_target/steps", "what it had spent when it reached `--target`",
        at(&Run::to_target, &RunPoint::steps)},
       {"target_samples", "/to_target/samples", "", at(&Run::to_target, &RunPoint::samples)},
       {"target_hours", "/to_target/hours", "", at(&Run::to_target, &RunPoint::hours)},
       {"target_money", "/to_target/money", "", at(&Run::to_target, &RunPoint::money)},
       {"wall_seconds", "", "how long it took on this machine",
        at(&Run::result, &RunResult::wall_seconds)}});
  return columns;
}

namespace {

using Json = nlohmann::ordered_json;

std::string csv_of(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return csv_field(value.get<std::string>());
  return value.is_number_float() ? fmt::to_string(value.get<double>()) : json_text(value);
}

template <class Row>
std::string csv_of(const std::vector<AnswerColumn<Row>>& columns, const std::vector<Row>& rows) {
  std::string text;
  const auto add_line = [&](const auto& field_of) {
    std::vector<std::string> fields;
    for (const AnswerColumn<Row>& column : columns) {
      if (!column.name.empty()) fields.push_back(field_of(column));
    }
    text += fmt::format("{}\n", fmt::join(fields, ","));
  };
  add_line([](const auto& column) { return csv_field(column.name); });
  for (const Row& row : rows) {
    add_line([&](const auto& column) { return csv_of(column.value(row)); });
  }
  return text;
}

template <class Row>
Json json_of(const std::vector<AnswerColumn<Row>>& columns, const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) {
    Json& object = all.emplace_back(Json::object());
    for (const AnswerColumn<Row>& column : columns) {
      if (!column.json.empty()) object[Json::json_pointer(column.json)] = column.value(row);
    }
    // A part of which nothing is known is null.
    for (Json& part : object) {
      const auto is_null = [](const Json& value) { return value.is_null(); };
      if (part.is_object() && std::ranges::all_of(part, is_null)) part = nullptr;
    }
  }
  return all;
}

Json estimate_json(const Estimate& estimate) {
  return {{"mean", estimate.mean},
          {"deviation", estimate.deviation},
          {"half_width", or_null(estimate.half_width)},
          {"count", estimate.count}};
}

Json tuning_json(const TuningAnswer& tuning) {
  Json values = Json::array();
  for (const auto& [value, estimate, ends] : tuning.values) {
    values.push_back({{"value", value},
                      {"estimate", estimate ? estimate_json(*estimate) : Json()},
                      {"ends", ends}});
  }
  return {{"option", tuning.option},
          {"setting", tuning.setting},
          {"taken", tuning.values[tuning.best].value},
          {"at_end", tuning.at_end},
          {"values", std::move(values)}};
}

}  // namespace

std::string cells_csv(const Answer& answer) {
  return csv_of(cell_columns(answer), answer.cells);
}

std::string runs_csv(const Answer& answer) {
  return csv_of(run_columns(answer), answer.runs);
}

std::string to_json(const Design& design, const Answer& answer,
                    std::span<const TuningAnswer> tuning) {
  Json axes = Json::object();
  for (const auto& [option, values] : design.axes) axes[option] = labels_of(option, values);
  Json json{{"measure", answer.is_accuracy ? "test accuracy in percent" : "test loss"},
            {"axes", std::move(axes)},
            {"budget", design.budget.amount.empty()
                           ? Json()
                           : Json(design.budget.kind + "=" + design.budget.amount)},
            {"target", or_null(answer.target)},
            {"level", kLevel},
            {"comparisons", answer.comparisons},
            {"chance", answer.chance},
            {"tuning", Json::array()},
            {"cells", json_of(cell_columns(answer), answer.cells)},
            {"runs", json_of(run_columns(answer), answer.runs)}};
  for (const TuningAnswer& tuned : tuning) json["tuning"].push_back(tuning_json(tuned));
  json["detectable"] = answer.blindness ? Json{{"power", kPower},
                                               {"deviations", answer.blindness->effect},
                                               {"least", answer.blindness->least},
                                               {"median", answer.blindness->middle},
                                               {"most", answer.blindness->most}}
                                        : Json();
  return json_text(json, 2) + '\n';
}

}  // namespace rubato
