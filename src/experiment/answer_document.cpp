#include "experiment/answer_document.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiment/answer_facts.hpp"
#include "experiment/answer_overview.hpp"

namespace rubato {

namespace {

using Cell = Answer::Cell;
using Comparison = Answer::Comparison;
using Row = std::vector<std::string>;

constexpr std::string_view kNothing = "-";
constexpr double kSmallestShownP = 0.001;

std::string number(double value, bool is_accuracy) {
  return is_accuracy ? fmt::format("{:.2f}", value) : fmt::format("{:.4g}", value);
}

std::string signed_number(double value, bool is_accuracy) {
  return is_accuracy ? fmt::format("{:+.2f}", value) : fmt::format("{:+.4g}", value);
}

std::string with_interval(std::string mean, const Estimate& estimate, bool is_accuracy) {
  if (!estimate.half_width) return mean;
  return fmt::format("{} ± {}", mean, number(*estimate.half_width, is_accuracy));
}

std::string p_value(const std::optional<double>& p) {
  if (!p) return std::string(kNothing);
  return *p < kSmallestShownP ? fmt::format("<{}", kSmallestShownP) : fmt::format("{:.3f}", *p);
}

// "12,345", "12.3": what is counted has no more digits than it is worth.
std::string amount(const std::optional<double>& value) {
  if (!value) return std::string(kNothing);
  if (*value >= 1000) return fmt::format("{:.0f}", *value);
  return fmt::format("{:.4g}", *value);
}

// "5 of 5 diverged", "1 of 5 failed, 1 of 5 missing".
std::string ends_in_words(const Answer& answer, const Cell& cell) {
  std::vector<std::string> words;
  for (const RunEnd end : {RunEnd::diverged, RunEnd::out_of_devices, RunEnd::failed,
                           RunEnd::missing, RunEnd::never_learned, RunEnd::unlearned}) {
    const auto count = std::ranges::count_if(
        cell.members, [&](std::size_t member) { return answer.runs[member].result.end == end; });
    if (count > 0) words.push_back(fmt::format("{} of {} {}", count, cell.runs, name_of(end)));
  }
  return fmt::to_string(fmt::join(words, ", "));
}

std::string value_in_words(const Answer& answer, const Cell& cell) {
  std::string ends = ends_in_words(answer, cell);
  if (!cell.value) return ends;
  const std::string value =
      with_interval(number(cell.value->mean, answer.is_accuracy), *cell.value, answer.is_accuracy);
  return ends.empty() ? value : fmt::format("{} ({})", value, ends);
}

std::string rank_in_words(const Cell& cell) {
  if (cell.is_best) return "best";
  if (!cell.to_best || !cell.to_best->adjusted) return "";
  return cell.to_best->stands ? "worse" : "tied";
}

// Which columns a table has.
struct Shape {
  /// Indices of Answer::columns: all that tell the cells of a condition apart.
  std::vector<std::size_t> columns{};
  bool clock = false;
  bool target = false;
};

Row labels_of_cell(const Cell& cell, const Shape& shape) {
  Row row;
  for (const std::size_t column : shape.columns) row.push_back(cell.labels[column]);
  return row;
}

Row header_of(const Answer& answer, const Shape& shape) {
  Row header;
  for (const std::size_t column : shape.columns) header.push_back(answer.columns[column]);
  return header;
}

void extend(Row& row, std::initializer_list<std::string> cells) {
  row.insert(row.end(), cells);
}

Row row_of(const Answer& answer, const Cell& cell, const Shape& shape) {
  Row row = labels_of_cell(cell, shape);
  extend(row, {value_in_words(answer, cell), rank_in_words(cell)});
  if (!cell.to_baseline) {
    const std::string nothing(kNothing);
    extend(row, {cell.is_baseline ? "the baseline" : nothing, nothing, nothing});
    return row;
  }
  const Comparison& comparison = *cell.to_baseline;
  const Estimate& difference = comparison.paired.difference;
  const std::string mean = signed_number(difference.mean, answer.is_accuracy);
  const std::string_view stands = !comparison.adjusted ? kNothing
                                  : comparison.stands  ? "yes"
                                                       : "no";
  extend(row, {with_interval(mean, difference, answer.is_accuracy), p_value(comparison.adjusted),
               std::string(stands)});
  return row;
}

Row cost_header(const Answer& answer, const Shape& shape) {
  Row header = header_of(answer, shape);
  extend(header, {"steps", "samples", "iterations", "batch sizes"});
  if (shape.clock) extend(header, {"hours", "money"});
  if (!shape.target) return header;
  extend(header, {fmt::format("reach {:g}{}", *answer.target, answer.is_accuracy ? " %" : ""),
                  "after steps"});
  if (shape.clock) extend(header, {"after hours", "after money"});
  return header;
}

Row cost_row(const Cell& cell, const Shape& shape) {
  Row row = labels_of_cell(cell, shape);
  const auto spent = [&](auto get) {
    return amount(cell.spent ? std::optional<double>(get(*cell.spent)) : std::nullopt);
  };
  extend(row,
         {spent([](const Answer::Spent& s) { return s.steps; }),
          spent([](const Answer::Spent& s) { return s.samples; }),
          spent([](const Answer::Spent& s) { return s.iterations; }),
          cell.elasticity ? fmt::to_string(cell.elasticity->batch_sizes) : std::string(kNothing)});
  if (shape.clock) {
    extend(row, {amount(cell.spent ? cell.spent->hours : std::nullopt),
                 amount(cell.spent ? cell.spent->money : std::nullopt)});
  }
  if (!shape.target) return row;
  const Answer::ToTarget& target = *cell.to_target;
  extend(row, {fmt::format("{} of {}", target.reached, cell.runs), amount(target.steps)});
  if (shape.clock) extend(row, {amount(target.hours), amount(target.money)});
  return row;
}

// The best first, what has no value last.
std::vector<const Cell*> ranked(const Answer& answer, std::size_t condition) {
  std::vector<const Cell*> cells;
  for (const Cell& cell : answer.cells) {
    if (cell.condition == condition) cells.push_back(&cell);
  }
  std::ranges::stable_sort(cells, [&](const Cell* one, const Cell* other) {
    if (!one->value || !other->value) return one->value.has_value() && !other->value.has_value();
    const double a = one->value->mean;
    const double b = other->value->mean;
    return answer.is_accuracy ? a > b : a < b;
  });
  return cells;
}

std::string best_in_words(std::span<const Cell* const> cells, const Shape& shape) {
  const auto name = [&](const Cell& cell) {
    return fmt::to_string(fmt::join(labels_of_cell(cell, shape), " "));
  };
  const auto best = std::ranges::find_if(cells, [](const Cell* cell) { return cell->is_best; });
  if (best == cells.end()) return {};
  std::vector<std::string> tied;
  bool tested = true;
  bool alone = true;
  for (const Cell* const cell : cells) {
    if (!cell->to_best) continue;
    alone = false;
    tested = tested && cell->to_best->adjusted.has_value();
    if (!cell->to_best->stands) tied.push_back(name(*cell));
  }
  const std::string begin = fmt::format("Best: {}.", name(**best));
  if (alone) return begin + " No other has a value.";
  if (!tested) return begin + " One seed tells it from no other.";
  if (tied.empty()) return begin + " All others that have a value are worse.";
  return fmt::format("{} Not to be told from it: {}.", begin, fmt::join(tied, ", "));
}

void add_rows(AnswerDocument::Table& table, Row header) {
  table.alignment.assign(header.size(), Column::left);
  table.rows.insert(table.rows.begin(), std::move(header));
}

void add_tables(AnswerDocument& document, const Design& design, const Answer& answer,
                std::size_t condition, const Shape& shape) {
  const std::vector<const Cell*> cells = ranked(answer, condition);
  const bool baseline =
      std::ranges::all_of(cells, [](const Cell* cell) { return cell->is_baseline; });
  const std::string title = answer.conditions[condition] + (baseline ? ", the baseline" : "");
  const std::size_t keys = shape.columns.size();
  AnswerDocument::Table results{.title = title, .keys = keys};
  AnswerDocument::Table costs{.title = title + ": what it took", .keys = keys};
  for (const Cell* const cell : cells) {
    results.rows.push_back(row_of(answer, *cell, shape));
    costs.rows.push_back(cost_row(*cell, shape));
  }
  Row header = header_of(answer, shape);
  extend(header, {answer.is_accuracy ? "accuracy %" : "test loss", "rank", "to the baseline",
                  "p (Holm)", "stands"});
  add_rows(results, std::move(header));
  add_rows(costs, cost_header(answer, shape));
  const std::string best = best_in_words(cells, shape);
  if (!best.empty()) results.notes.push_back(best);
  const std::string constant = constant_in_words(answer, condition);
  if (!constant.empty()) results.notes.push_back(constant);
  const std::string off = off_budget_in_words(design, cells, shape.columns);
  if (!off.empty()) costs.notes.push_back(off);
  document.tables.push_back(std::move(results));
  document.tables.push_back(std::move(costs));
}

AnswerDocument::Table table_of(const TuningAnswer& tuning, bool is_accuracy) {
  AnswerDocument::Table table{
      .title = fmt::format("--{} for the baseline{}{}", tuning.option,
                           tuning.setting.empty() ? "" : ", ", tuning.setting),
      .alignment = {Column::left, Column::left, Column::left},
      .rows = {{tuning.option, is_accuracy ? "accuracy %" : "test loss", ""}}};
  for (std::size_t i = 0; i < tuning.values.size(); ++i) {
    const TuningAnswer::Value& value = tuning.values[i];
    const std::string mean = value.estimate ? number(value.estimate->mean, is_accuracy)
                                            : fmt::to_string(fmt::join(value.ends, ", "));
    table.rows.push_back({value.value, mean, i == tuning.best ? "taken" : ""});
  }
  if (tuning.at_end) {
    table.notes.push_back(fmt::format("{} is at an end of the list: a better one may lie beyond.",
                                      tuning.values[tuning.best].value));
  }
  return table;
}

std::vector<std::string> notes_of(const Answer& answer) {
  struct Words {
    RunEnd end;
    std::string words;
  };
  const std::array<Words, 6> all{
      {{RunEnd::diverged, "the loss or the gradient became infinite or NaN"},
       {RunEnd::out_of_devices, "the availability had no devices for the rest of the training"},
       {RunEnd::never_learned,
        fmt::format("no number became infinite, but the accuracy of no epoch exceeds {:.1f} %, "
                    "the share of the largest class, by more than {:g} points",
                    answer.chance, kLearned * 100)},
       {RunEnd::unlearned, "learned, and in the end back at the share of the largest class"},
       {RunEnd::failed, "ended with an error"},
       {RunEnd::missing, "not at its end yet: rubato compare --resume goes on"}}};
  std::vector<std::string> notes;
  for (const auto& [end, words] : all) {
    const std::vector<std::string> names = answer.names_of(end);
    if (names.empty()) continue;
    notes.push_back(fmt::format("{} ({}): {}", name_of(end), words, fmt::join(names, ", ")));
  }
  for (const Answer::Run& run : answer.runs) {
    if (run.result.end == RunEnd::failed) {
      notes.push_back(fmt::format("{}: {}", run.name, run.result.reason));
    }
  }
  return notes;
}

std::string limits_of(const Answer& answer) {
  const auto seeds = answer.seeds.size();
  if (seeds == 1) {
    return "What one seed cannot show: how much of a difference is chance. There is no interval "
           "and "
           "no test; --seed 1..5 has both.";
  }
  if (!answer.blindness) {
    return fmt::format("What {} seeds cannot show: nothing was compared with a baseline.", seeds);
  }
  const auto& [least, middle, most, effect] = *answer.blindness;
  const std::string unit = answer.is_accuracy ? " points" : "";
  const auto shown = [&](double value) { return number(value, answer.is_accuracy); };
  const std::string range =
      answer.comparisons == 1
          ? shown(middle) + unit + " here"
          : fmt::format(
                "here {}{} in the middle of the cells, {} where they deviate least and {} "
                "where most",
                shown(middle), unit, shown(least), shown(most));
  return fmt::format(
      "What {} seeds cannot show: to be found with {:g} % probability among {} comparison{}, a "
      "true "
      "difference to the baseline has to be {:.2f} times as large as the paired differences "
      "deviate: "
      "{} (by deviations that are themselves estimated from {} seeds). That a difference does not "
      "stand does not say that there is none. The best is picked by these same seeds, so its lead "
      "is "
      "overstated.",
      seeds, kPower * 100, answer.comparisons, answer.comparisons == 1 ? "" : "s", effect, range,
      seeds);
}

}  // namespace

AnswerDocument document_of(const Design& design, const Answer& answer,
                           std::span<const TuningAnswer> tuning) {
  AnswerDocument document{.facts = facts_of(design, answer, tuning),
                          .tables = overviews_of(answer)};
  for (const TuningAnswer& tuned : tuning) {
    document.tables.push_back(table_of(tuned, answer.is_accuracy));
  }
  Shape shape{.clock = answer.has_clock(), .target = answer.target.has_value()};
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    if (!is_condition(answer.columns[i])) shape.columns.push_back(i);
  }
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    add_tables(document, design, answer, i, shape);
  }
  document.notes = notes_of(answer);
  document.limits = limits_of(answer);
  return document;
}

}  // namespace rubato
