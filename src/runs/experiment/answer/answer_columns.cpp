// cell_columns() and run_columns() are the one table of an answer (docs/adr/0058): a row names a
// number, its place in CSV and in JSON and, if people see it, its heading and its words. CSV, JSON
// and printed tables are loops over these rows. A value is given by a path of members, such as
// at(&AnswerCell::spent, &Answer::Spent::steps), and is empty if a member on the path is
// (value_at()). Numbers that an answer does not have, such as hours without a virtual clock, stay
// in the files but get AnswerTable::none.

#include "answer_columns.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "answer_summary.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/text/json.hpp"
#include "rate_curves.hpp"
#include "runs/config/run_option.hpp"
#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/value_list.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;
using AnswerCell = Answer::Cell;
using Run = Answer::Run;
using Comparison = Answer::Comparison;

// --- Text for printed tables ---

std::string with_interval(std::string mean, const Estimate& estimate, bool is_accuracy) {
  if (!estimate.half_width) return mean;
  return fmt::format("{} ± {}", mean, value_in_words(*estimate.half_width, is_accuracy));
}

std::int64_t count_of(const Answer& answer, const AnswerCell& cell, ResultEnd end) {
  return std::ranges::count_if(
      cell.members, [&](std::size_t member) { return answer.runs[member].result.end == end; });
}

// Examples: "73.00 ± 21.60", "5 of 5 diverged", "24.78 ± 37.04 (3 of 5 unlearned)".
std::string result_in_words(const Answer& answer, const AnswerCell& cell) {
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

std::string difference_in_words(const Answer& answer, const AnswerCell& cell) {
  if (!cell.to_baseline) return kNothing;
  const Estimate& difference = cell.to_baseline->difference;
  const std::string mean = value_in_words(difference.mean, answer.is_accuracy);
  return with_interval(mean.starts_with('-') ? mean : '+' + mean, difference, answer.is_accuracy);
}

std::string p_in_words(const std::optional<double>& p) {
  constexpr double kSmallest = 0.001;
  if (!p) return kNothing;
  return *p < kSmallest ? fmt::format("<{}", kSmallest) : fmt::format("{:.3f}", *p);
}

using AgainstMargin = Answer::AgainstMargin;
using MarginTestOfCell = std::optional<AgainstMargin> AnswerCell::*;

// Example: "at most 0.41".
std::string bound_in_words(const Answer& answer, const AnswerCell& cell, MarginTestOfCell test) {
  const std::optional<AgainstMargin>& found = cell.*test;
  if (!found || !found->bound) return kNothing;
  return "at most " + value_in_words(*found->bound, answer.is_accuracy);
}

// A verdict that another learning rate might change has a mark if nobody has tuned it.
std::string verdict_in_words(const Answer& answer, const std::optional<Verdict>& verdict) {
  if (!verdict) return kNothing;
  const bool is_marked = !answer.untuned.empty() && *verdict != Verdict::baseline &&
                         *verdict != Verdict::untested && *verdict != Verdict::lost;
  return fmt::format("{}{}", name_of(*verdict), is_marked ? kUntunedMark : "");
}

// --- Values for programs ---

using column_detail::IsOptional;

// Follows the members of `path` from `value`, one after the other; the result is optional if a
// value on the way is.
template <class T, class... Path>
auto value_at(const T& value, Path... path) {
  if constexpr (IsOptional<T>::value) {
    using Value = decltype(value_at(*value, path...));
    using Known = typename column_detail::Unwrapped<Value>::Type;
    return value ? std::optional<Known>(value_at(*value, path...)) : std::nullopt;
  } else if constexpr (sizeof...(Path) > 0) {
    return [&](auto first, auto... rest) {
      return value_at(std::invoke(first, value), rest...);
    }(path...);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else {
    return value;
  }
}
template <class... Path>
auto at(Path... path) {
  return [path...](const auto& row) { return value_at(row, path...); };
}

template <class Row>
class Columns {
 public:
  // Adds a column whose place in JSON is `json`, such as "spent/steps"; empty for one that is in
  // CSV only. Without a help, that of the column before covers it.
  template <class Get>
  AnswerColumn<Row>& add(std::string name, const std::string& json, std::string help, Get get,
                         AnswerTable table = AnswerTable::none, std::string heading = {},
                         std::function<std::string(const Row&)> words = {}) {
    using Value = std::invoke_result_t<Get, const Row&>;
    const std::size_t slash = json.find('/');
    if (help.empty()) help = columns_.back().record.info().help;
    ColumnInfo info{.name = std::move(name),
                    .help = std::move(help),
                    .object = slash == std::string::npos ? "" : json.substr(0, slash),
                    .key = json.substr(slash + 1),
                    .null_if_none = IsOptional<Value>::value,
                    .shown = !json.empty()};
    return columns_.emplace_back(AnswerColumn<Row>{
        {std::move(info), std::move(get)}, table, std::move(heading), std::move(words)});
  }
  void add_labels(const Answer& answer) {
    for (std::size_t i = 0; i < answer.columns.size(); ++i) {
      add(answer.columns[i], answer.columns[i], "the value of the option",
          [i](const Row& row) { return row.labels[i]; });
    }
  }
  [[nodiscard]] std::vector<AnswerColumn<Row>> columns() && { return std::move(columns_); }

 private:
  std::vector<AnswerColumn<Row>> columns_;
};

// The columns of a test of the margin.
void add_margin_columns(Columns<AnswerCell>& columns, const Answer& answer, MarginTestOfCell test,
                        const std::string& prefix, const std::string& object,
                        const std::string& other) {
  const auto table = answer.margin ? AnswerTable::margins : AnswerTable::none;
  // The help of the first test says that of the second, too.
  const auto help = [&](const char* text) { return prefix.empty() ? text : ""; };
  columns.add(prefix + "margin", object + "/margin",
              prefix.empty() ? "with `--margin`: the margin of the test against the baseline"
                             : "the same against the best cell of the condition",
              at(test, &AgainstMargin::margin));
  columns.add(
      prefix + "margin_bound", object + "/bound",
      help("upper end of the one-sided 95 % interval of how far it is behind"),
      at(test, &AgainstMargin::bound), table, "behind the " + other,
      [&answer, test](const AnswerCell& cell) { return bound_in_words(answer, cell, test); });
  columns.add(prefix + "margin_p", object + "/p",
              help("p-value of the one-sided paired t-test against the margin"),
              at(test, &AgainstMargin::p));
  columns.add(prefix + "margin_p_holm", object + "/p_holm",
              help("the same after Holm's correction within the condition"),
              at(test, &AgainstMargin::adjusted), table, "p (Holm)",
              [test](const AnswerCell& cell) {
                return p_in_words(cell.*test ? (cell.*test)->adjusted : std::nullopt);
              });
  columns.add(prefix + "margin_verdict", object + "/verdict", help("its verdict"),
              at(test, &AgainstMargin::verdict), table, "verdict",
              [&answer, test](const AnswerCell& cell) {
                return verdict_in_words(
                    answer, cell.*test ? std::optional((cell.*test)->verdict) : std::nullopt);
              });
  columns.add(prefix + "margin_seeds", object + "/seeds", help("how many seeds that test needs"),
              at(test, &AgainstMargin::seeds), table, "seeds");
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

std::vector<AnswerColumn<AnswerCell>> cell_columns(const Answer& answer) {
  using Target = Answer::ToTarget;
  constexpr auto kResults = AnswerTable::results;
  constexpr auto kCosts = AnswerTable::costs;
  const auto clock = answer.has_clock() ? kCosts : AnswerTable::none;
  const auto target = answer.target ? kCosts : AnswerTable::none;
  const auto target_clock = answer.target ? clock : AnswerTable::none;
  const std::string reach =
      fmt::format("reach {:g}{}", answer.target.value_or(0), answer.is_accuracy ? " %" : "");

  Columns<AnswerCell> columns;
  columns.add_labels(answer);
  columns.add("condition", "condition",
              "what a user is given and does not choose; each condition has a best cell",
              [&](const AnswerCell& cell) { return answer.conditions[cell.condition]; });
  columns.add("baseline", "baseline", "whether it is a baseline", at(&AnswerCell::is_baseline));
  columns.add("runs", "runs", "how many runs it has, one for each seed", at(&AnswerCell::runs));
  for (const ResultEndRow& row : kResultEnds) {
    std::string name(row.name);
    std::ranges::replace(name, ' ', '_');
    columns.add(
        std::move(name), fmt::format("ends/{}", row.name), "runs that ended this way",
        [&answer, end = row.value](const AnswerCell& cell) { return count_of(answer, cell, end); });
  }
  columns.add("mean", "value/mean",
              "mean of the final test accuracies in percent, or of the test losses",
              at(&AnswerCell::value, &Estimate::mean), kResults,
              answer.is_accuracy ? "accuracy %" : "test loss",
              [&](const AnswerCell& cell) { return result_in_words(answer, cell); });
  columns.add("deviation", "value/deviation",
              "their standard deviation, and half of the 95 % interval of the mean",
              at(&AnswerCell::value, &Estimate::deviation));
  columns.add("half_width", "value/half_width", "", at(&AnswerCell::value, &Estimate::half_width));
  columns.add("rank", "rank", "verdict against the best cell of the condition",
              at(&AnswerCell::rank), kResults, "rank",
              [&](const AnswerCell& cell) { return verdict_in_words(answer, cell.rank); });
  columns.add(
      "difference", "to_baseline/mean", "mean of the differences to the baseline, seed by seed",
      at(&AnswerCell::to_baseline, &Comparison::difference, &Estimate::mean), kResults,
      "to the baseline", [&](const AnswerCell& cell) { return difference_in_words(answer, cell); });
  columns.add("difference_deviation", "to_baseline/deviation",
              "their standard deviation, and half of the 95 % interval of the mean",
              at(&AnswerCell::to_baseline, &Comparison::difference, &Estimate::deviation));
  columns.add("difference_half_width", "to_baseline/half_width", "",
              at(&AnswerCell::to_baseline, &Comparison::difference, &Estimate::half_width));
  columns.add("p", "to_baseline/p", "p-value of the paired t-test",
              at(&AnswerCell::to_baseline, &Comparison::p));
  columns.add("p_holm", "to_baseline/p_holm",
              "the same after Holm's correction for all comparisons of the answer",
              at(&AnswerCell::to_baseline, &Comparison::adjusted), kResults, "p (Holm)",
              [](const AnswerCell& cell) {
                return p_in_words(cell.to_baseline ? cell.to_baseline->adjusted : std::nullopt);
              });
  columns.add("verdict", "verdict", "verdict against the baseline", at(&AnswerCell::verdict),
              kResults, "verdict",
              [&](const AnswerCell& cell) { return verdict_in_words(answer, cell.verdict); });
  columns.add(
      "best_difference", "to_best/mean",
      "the same for the differences to the best cell of the condition, corrected within the "
      "condition",
      at(&AnswerCell::to_best, &Comparison::difference, &Estimate::mean));
  columns.add("best_difference_deviation", "to_best/deviation", "",
              at(&AnswerCell::to_best, &Comparison::difference, &Estimate::deviation));
  columns.add("best_difference_half_width", "to_best/half_width", "",
              at(&AnswerCell::to_best, &Comparison::difference, &Estimate::half_width));
  columns.add("best_p", "to_best/p", "", at(&AnswerCell::to_best, &Comparison::p));
  columns.add("best_p_holm", "to_best/p_holm", "", at(&AnswerCell::to_best, &Comparison::adjusted));
  columns.add("steps", "spent/steps", "spent on average by the runs that have a final value",
              at(&AnswerCell::spent, &Answer::Spent::steps), kCosts, "steps");
  columns.add("samples", "spent/samples", "", at(&AnswerCell::spent, &Answer::Spent::samples),
              kCosts, "samples");
  columns.add("epochs", "spent/epochs", "", at(&AnswerCell::spent, &Answer::Spent::epochs));
  columns.add("iterations", "spent/iterations",
              "the same, scale-invariant, as the rule counts them",
              at(&AnswerCell::spent, &Answer::Spent::iterations), kCosts, "iterations");
  columns.add(
      "batch_sizes", "elasticity/batch_sizes",
      "how many different batch sizes a run had, at most; the last step of an epoch does not "
      "count",
      at(&AnswerCell::elasticity, &Elasticity::batch_sizes), kCosts, "batch sizes");
  columns.add("least_batch", "elasticity/least_batch", "the smallest and the largest of them",
              at(&AnswerCell::elasticity, &Elasticity::least_batch));
  columns.add("most_batch", "elasticity/most_batch", "",
              at(&AnswerCell::elasticity, &Elasticity::most_batch));
  columns.add("fewest_cores", "elasticity/fewest_cores", "the fewest and the most cores of a step",
              at(&AnswerCell::elasticity, &Elasticity::fewest_cores));
  columns.add("most_cores", "elasticity/most_cores", "",
              at(&AnswerCell::elasticity, &Elasticity::most_cores));
  columns.add("hours", "spent/hours", "spent on average on the virtual clock",
              at(&AnswerCell::spent, &Answer::Spent::hours), clock, "hours");
  columns.add("core_hours", "spent/core_hours", "",
              at(&AnswerCell::spent, &Answer::Spent::core_hours));
  columns.add("money", "spent/money", "", at(&AnswerCell::spent, &Answer::Spent::money), clock,
              "money");
  columns.add("samples_per_hour", "spent/samples_per_hour",
              "goodput: samples per hour, and per hour of a core that was paid for",
              at(&AnswerCell::spent, &Answer::Spent::samples_per_hour), clock, "samples/hour");
  columns.add("samples_per_core_hour", "spent/samples_per_core_hour", "",
              at(&AnswerCell::spent, &Answer::Spent::samples_per_core_hour), clock,
              "samples/core-hour");
  columns.add("reached_target", "to_target/reached", "how many runs reached `--target`",
              at(&AnswerCell::to_target, &Target::reached), target, reach,
              [](const AnswerCell& cell) {
                return fmt::format("{} of {}", cell.to_target->reached, cell.runs);
              });
  columns.add("target_steps", "to_target/median_steps",
              "median of the cost of reaching it; a run that never did counts as more than any",
              at(&AnswerCell::to_target, &Target::steps), target, "after steps");
  columns.add("target_samples", "to_target/median_samples", "",
              at(&AnswerCell::to_target, &Target::samples));
  columns.add("target_hours", "to_target/median_hours", "",
              at(&AnswerCell::to_target, &Target::hours), target_clock, "after hours");
  columns.add("target_money", "to_target/median_money", "",
              at(&AnswerCell::to_target, &Target::money), target_clock, "after money");
  add_margin_columns(columns, answer, &AnswerCell::margin_to_baseline, "", "margin_to_baseline",
                     "baseline");
  add_margin_columns(columns, answer, &AnswerCell::margin_to_best, "best_", "margin_to_best",
                     "best");
  return std::move(columns).columns();
}

std::vector<AnswerColumn<Run>> run_columns(const Answer& answer) {
  Columns<Run> columns;
  columns.add("name", "name", "its folder in `runs/`", at(&Run::name));
  columns.add_labels(answer);
  columns.add("seed", "seed", "its seed", at(&Run::seed));
  columns.add("baseline", "baseline", "whether it is a run of a baseline", at(&Run::is_baseline));
  columns.add("end", "end", "how it ended", at(&Run::result, &RunResult::end));
  columns
      .add("reason", "reason", "why, in its own words, if it did not end well",
           [](const Run& run) {
             const std::string& reason = run.result.reason;
             return reason.empty() ? std::nullopt : std::optional(reason);
           })
      .in_csv = false;
  columns.add("final", "final", "the last test accuracy, as a share, or test loss",
              at(&Run::result, &RunResult::final_value));
  columns.add("best", "best", "the best of all epochs", at(&Run::result, &RunResult::best_value));
  columns.add("epochs", "spent/epochs", "what it spent", at(&Run::result, &RunResult::epochs));
  columns.add("steps", "spent/steps", "", at(&Run::result, &RunResult::last, &RunPoint::steps));
  columns.add("samples", "spent/samples", "",
              at(&Run::result, &RunResult::last, &RunPoint::samples));
  columns.add("iterations", "spent/iterations",
              "the same, scale-invariant, as the rule counts them",
              at(&Run::result, &RunResult::iterations));
  columns.add("hours", "spent/hours", "the same, on the virtual clock",
              at(&Run::result, &RunResult::last, &RunPoint::hours));
  columns.add("core_hours", "spent/core_hours", "",
              at(&Run::result, &RunResult::last, &RunPoint::core_hours));
  columns.add("money", "spent/money", "", at(&Run::result, &RunResult::last, &RunPoint::money));
  columns.add("samples_per_hour", "spent/samples_per_hour",
              "goodput: samples per hour, and per hour of a core that was paid for",
              at(&Run::result, &RunResult::last, &RunPoint::samples_per_hour));
  columns.add("samples_per_core_hour", "spent/samples_per_core_hour", "",
              at(&Run::result, &RunResult::last, &RunPoint::samples_per_core_hour));
  columns.add("target_steps", "to_target/steps", "what it had spent when it reached `--target`",
              at(&Run::to_target, &RunPoint::steps));
  columns.add("target_samples", "to_target/samples", "", at(&Run::to_target, &RunPoint::samples));
  columns.add("target_hours", "to_target/hours", "", at(&Run::to_target, &RunPoint::hours));
  columns.add("target_money", "to_target/money", "", at(&Run::to_target, &RunPoint::money));
  columns.add("wall_seconds", "", "how long it took on this machine",
              at(&Run::result, &RunResult::wall_seconds));
  return std::move(columns).columns();
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
      if (column.in_csv) fields.push_back(field_of(column));
    }
    text += fmt::format("{}\n", fmt::join(fields, ","));
  };
  add_line([](const auto& column) { return csv_field(column.name()); });
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
      const ColumnInfo& info = column.record.info();
      if (info.shown) put_cell(object, info, column.record.read(row));
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
  for (const auto& [value, estimate, ends, is_lost, finals] : tuning.values) {
    values.push_back({{"value", value},
                      {"estimate", estimate ? estimate_json(*estimate) : Json()},
                      {"lost", is_lost},
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
            {"margin", answer.margin ? Json(text_of(*answer.margin)) : Json()},
            {"untuned", answer.untuned.empty() ? Json() : Json(answer.untuned)},
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
  json["rates"] = rates_json(answer);
  json["all_conditions"] = answer.together ? json_of(*answer.together, answer) : Json();
  return json_text(json, 2) + '\n';
}

}  // namespace rubato
