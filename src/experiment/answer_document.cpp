#include "experiment/answer_document.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/run_option.hpp"
#include "experiment/labels.hpp"

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
  for (const RunEnd end : {RunEnd::diverged, RunEnd::failed, RunEnd::missing, RunEnd::never_learned,
                           RunEnd::unlearned}) {
    const auto count = std::ranges::count_if(
        cell.members, [&](std::size_t member) { return answer.runs[member].result.end == end; });
    if (count > 0) words.push_back(fmt::format("{} of {} {}", count, cell.runs, name_of(end)));
  }
  return fmt::to_string(fmt::join(words, ", "));
}

std::string value_in_words(const Answer& answer, const Cell& cell) {
  const std::string ends = ends_in_words(answer, cell);
  if (!cell.value) return ends;
  const std::string value =
      with_interval(number(cell.value->mean, answer.is_accuracy), *cell.value, answer.is_accuracy);
  return ends.empty() ? value : fmt::format("{} ({})", value, ends);
}

std::string rank_in_words(const Cell& cell) {
  if (cell.is_best) return "best";
  if (!cell.to_best || !cell.to_best->adjusted) return "";
  return cell.to_best->stands ? "worse" : "not told from it";
}

// Which columns a table has.
struct Shape {
  /// Indices of Answer::columns: all that tell the cells of a condition apart.
  std::vector<std::size_t> columns{};
  bool clock = false;
  bool target = false;
};

Row header_of(const Answer& answer, const Shape& shape) {
  Row header;
  for (const std::size_t column : shape.columns) header.push_back(answer.columns[column]);
  header.emplace_back(answer.is_accuracy ? "accuracy %" : "test loss");
  header.emplace_back("to the best");
  header.insert(header.end(), {"to the baseline", "p (Holm)", "stands"});
  header.emplace_back("steps");
  if (shape.clock) header.insert(header.end(), {"hours", "money"});
  if (!shape.target) return header;
  const std::string target = fmt::format("{}{}", *answer.target, answer.is_accuracy ? " %" : "");
  header.push_back(fmt::format("reach {}", target));
  header.emplace_back("after steps");
  if (shape.clock) header.insert(header.end(), {"hours ", "money "});
  return header;
}

Row row_of(const Answer& answer, const Cell& cell, const Shape& shape) {
  Row row;
  for (const std::size_t column : shape.columns) row.push_back(cell.labels[column]);
  row.push_back(value_in_words(answer, cell));
  row.push_back(rank_in_words(cell));
  if (cell.to_baseline) {
    const Estimate& difference = cell.to_baseline->paired.difference;
    row.push_back(with_interval(signed_number(difference.mean, answer.is_accuracy), difference,
                                answer.is_accuracy));
    row.push_back(p_value(cell.to_baseline->adjusted));
    row.emplace_back(!cell.to_baseline->adjusted ? kNothing
                     : cell.to_baseline->stands  ? "yes"
                                                 : "no");
  } else {
    row.insert(row.end(), {cell.is_baseline ? "the baseline" : std::string(kNothing),
                           std::string(kNothing), std::string(kNothing)});
  }
  const auto spent = [&](auto get) {
    return amount(cell.spent ? std::optional<double>(get(*cell.spent)) : std::nullopt);
  };
  row.push_back(spent([](const Answer::Spent& s) { return s.steps; }));
  if (shape.clock) {
    row.push_back(amount(cell.spent ? cell.spent->hours : std::nullopt));
    row.push_back(amount(cell.spent ? cell.spent->money : std::nullopt));
  }
  if (!shape.target) return row;
  row.push_back(fmt::format("{} of {}", cell.to_target->reached, cell.runs));
  row.push_back(amount(cell.to_target->steps));
  if (shape.clock) {
    row.push_back(amount(cell.to_target->hours));
    row.push_back(amount(cell.to_target->money));
  }
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

std::string best_in_words(const Answer& answer, std::span<const Cell* const> cells,
                          const Shape& shape) {
  const auto name = [&](const Cell& cell) {
    std::vector<std::string> labels;
    for (const std::size_t column : shape.columns) labels.push_back(cell.labels[column]);
    return fmt::to_string(fmt::join(labels, " "));
  };
  const auto best = std::ranges::find_if(cells, [](const Cell* cell) { return cell->is_best; });
  if (best == cells.end()) return {};
  std::vector<std::string> like;
  bool tested = true;
  for (const Cell* const cell : cells) {
    if (!cell->to_best) continue;
    tested = tested && cell->to_best->adjusted.has_value();
    if (!cell->to_best->stands) like.push_back(name(*cell));
  }
  const std::string begin = fmt::format("Best: {}.", name(**best));
  if (!tested) return begin + " One seed tells it from no other.";
  if (like.empty()) return begin + " All others are worse.";
  static_cast<void>(answer);
  return fmt::format("{} Not told from it: {}.", begin, fmt::join(like, ", "));
}

AnswerDocument::Table table_of(const Answer& answer, std::size_t condition, const Shape& shape) {
  AnswerDocument::Table table{.title = answer.conditions[condition]};
  const std::vector<const Cell*> cells = ranked(answer, condition);
  if (std::ranges::all_of(cells, [](const Cell* cell) { return cell->is_baseline; })) {
    table.title += ", the baseline";
  }
  table.rows.push_back(header_of(answer, shape));
  for (std::size_t i = 0; i < table.rows.front().size(); ++i) {
    table.alignment.push_back(Column::left);
  }
  for (const Cell* const cell : cells) table.rows.push_back(row_of(answer, *cell, shape));
  if (const std::string best = best_in_words(answer, cells, shape); !best.empty()) {
    table.notes.push_back(best);
  }
  return table;
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

std::vector<std::string> facts_of(const Design& design, const Answer& answer,
                                  std::span<const TuningAnswer> tuning) {
  const RunBudget budget =
      design.budget.amount.empty() && !is_axis(design, "epochs")
          ? RunBudget{.kind = "epochs", .amount = fmt::to_string(design.base.epochs)}
          : design.budget;
  std::vector<std::string> facts;
  for (const std::string_view option : {"model", "data"}) {
    if (!is_axis(design, option)) {
      facts.push_back(
          fmt::format("{} {}", option, labels_of(option, values_of(design, option)).front()));
    }
  }
  std::string first = fmt::to_string(fmt::join(facts, ", "));
  facts = {first};
  facts.push_back(fmt::format(
      "{}; seeds {}",
      budget.amount.empty() ? "no budget in common" : fmt::format("each run: {}", describe(budget)),
      fmt::join(answer.seeds, ", ")));
  std::vector<std::string> baselines;
  for (const Cell& cell : answer.cells) {
    if (!cell.is_baseline) continue;
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < answer.columns.size(); ++i) {
      labels.push_back(fmt::format("{} {}", answer.columns[i], cell.labels[i]));
    }
    baselines.push_back(fmt::to_string(fmt::join(labels, ", ")));
  }
  facts.push_back(fmt::format("baseline: {}", fmt::join(baselines, "; ")));
  for (const TuningAnswer& tuned : tuning) {
    facts.push_back(fmt::format("{} {}{}{}, tuned for the baseline and used by all{}", tuned.option,
                                tuned.values[tuned.best].value,
                                tuned.setting.empty() ? "" : " with ", tuned.setting,
                                tuned.at_end ? " (at an end of the list: a better one may lie "
                                               "beyond)"
                                             : ""));
  }
  std::erase(facts, "");
  return facts;
}

std::vector<std::string> notes_of(const Answer& answer) {
  struct Words {
    RunEnd end;
    std::string words;
  };
  const std::array<Words, 5> all{
      {{RunEnd::diverged, "the loss or the gradient became infinite or NaN"},
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
  return fmt::format(
      "What {} seeds cannot show: a true difference to the baseline of {}{} is found with {:g} % "
      "probability, a smaller one more rarely ({:.2f} deviations of the paired differences, at the "
      "level of {} comparison{}; {} to {}{} for the cells, whose deviations are themselves "
      "estimated "
      "from {} seeds). That a difference does not stand does not say that there is none. The best "
      "is "
      "picked by the same seeds, so its lead is overstated.",
      seeds, shown(middle), unit, kPower * 100, effect, answer.comparisons,
      answer.comparisons == 1 ? "" : "s", shown(least), shown(most), unit, seeds);
}

}  // namespace

AnswerDocument document_of(const Design& design, const Answer& answer,
                           std::span<const TuningAnswer> tuning) {
  AnswerDocument document{.facts = facts_of(design, answer, tuning)};
  for (const TuningAnswer& tuned : tuning) {
    document.tables.push_back(table_of(tuned, answer.is_accuracy));
  }
  Shape shape{.clock = answer.has_clock(), .target = answer.target.has_value()};
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    if (!is_condition(answer.columns[i])) shape.columns.push_back(i);
  }
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    document.tables.push_back(table_of(answer, i, shape));
  }
  document.notes = notes_of(answer);
  document.limits = limits_of(answer);
  return document;
}

}  // namespace rubato
