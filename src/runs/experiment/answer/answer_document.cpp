#include "answer_document.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "answer_columns.hpp"
#include "answer_facts.hpp"
#include "base/core/text/text.hpp"

namespace rubato {

namespace {

using AnswerCell = Answer::Cell;
using Table = AnswerDocument::Table;
using Row = std::vector<std::string>;

// The labels of the columns that tell the cells of a condition apart.
Row keys_of(const AnswerCell& cell, std::span<const std::size_t> keys) {
  Row labels;
  for (const std::size_t key : keys) labels.push_back(cell.labels[key]);
  return labels;
}

// A table of the labels, followed by the columns of `kind`.
Table table_of(const Answer& answer, AnswerTable kind, std::span<const AnswerCell* const> cells,
               std::span<const std::size_t> keys) {
  Table table{.keys = keys.size(), .kind = kind};
  table.rows.emplace_back();
  for (const std::size_t key : keys) table.rows.front().push_back(answer.columns[key]);
  for (const AnswerCell* const cell : cells) table.rows.push_back(keys_of(*cell, keys));
  table.alignment.assign(keys.size(), Column::left);
  for (const AnswerColumn<AnswerCell>& column : cell_columns(answer)) {
    if (column.table != kind) continue;
    table.alignment.push_back(column.words ? Column::left : Column::right);
    table.rows.front().push_back(column.heading);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const AnswerCell& cell = *cells[i];
      table.rows[i + 1].push_back(column.words ? column.words(cell)
                                               : amount_in_words(column.value(cell)));
    }
  }
  return table;
}

// The cells of a condition, the best first, those without a value last.
std::vector<const AnswerCell*> ranked(const Answer& answer, std::size_t condition) {
  std::vector<const AnswerCell*> cells;
  for (const AnswerCell& cell : answer.cells) {
    if (cell.condition == condition) cells.push_back(&cell);
  }
  std::ranges::stable_sort(cells, [&](const AnswerCell* one, const AnswerCell* other) {
    if (!one->value || !other->value) return one->value.has_value() && !other->value.has_value();
    const double a = one->value->mean;
    const double b = other->value->mean;
    return answer.is_accuracy ? a > b : a < b;
  });
  return cells;
}

// The names of the cells that have this rank.
Row named(std::span<const AnswerCell* const> cells, std::span<const std::size_t> keys,
          Verdict rank) {
  Row names;
  for (const AnswerCell* const cell : cells) {
    if (cell->rank != rank) continue;
    names.push_back(fmt::to_string(fmt::join(keys_of(*cell, keys), " ")));
  }
  return names;
}

std::string best_in_words(std::span<const AnswerCell* const> cells,
                          std::span<const std::size_t> keys) {
  const Row best = named(cells, keys, Verdict::best);
  if (best.empty()) return {};
  const std::string begin = fmt::format("Best: {}.", best.front());
  if (!named(cells, keys, Verdict::untested).empty()) {
    return begin + " One seed cannot tell it from the others.";
  }
  const Row tied = named(cells, keys, Verdict::tied);
  if (!tied.empty()) return fmt::format("{} Tied with it: {}.", begin, fmt::join(tied, ", "));
  if (named(cells, keys, Verdict::worse).empty()) return begin + " No other has a value.";
  return begin + (named(cells, keys, Verdict::lost).empty()
                      ? " All others are worse."
                      : " All others that have a value are worse.");
}

std::string lost_in_words(std::span<const AnswerCell* const> cells,
                          std::span<const std::size_t> keys) {
  const Row lost = named(cells, keys, Verdict::lost);
  return lost.empty() ? std::string() : fmt::format("Lost: {}.", fmt::join(lost, ", "));
}

void add_tables(AnswerDocument& document, const Design& design, const Answer& answer,
                std::size_t condition, std::span<const std::size_t> keys) {
  const std::vector<const AnswerCell*> cells = ranked(answer, condition);
  const bool baseline =
      std::ranges::all_of(cells, [](const AnswerCell* cell) { return cell->is_baseline; });
  Table results = table_of(answer, AnswerTable::results, cells, keys);
  results.title = answer.conditions[condition] + (baseline ? ", the baseline" : "");
  const std::string best = best_in_words(cells, keys);
  const std::string lost = lost_in_words(cells, keys);
  if (!baseline && !(best.empty() && lost.empty())) {
    document.findings.push_back(fmt::format("{}: {}{}{}", answer.conditions[condition], best,
                                            best.empty() || lost.empty() ? "" : " ", lost));
  }
  results.notes = {best, constant_in_words(answer, condition)};
  Table costs = table_of(answer, AnswerTable::costs, cells, keys);
  costs.title = results.title + ": what it took";
  costs.notes = {off_budget_in_words(design, cells, keys)};
  for (Table* const table : {&results, &costs}) {
    std::erase(table->notes, "");
    document.tables.push_back(std::move(*table));
  }
}

Table table_of(const TuningAnswer& tuning, bool is_accuracy) {
  Table table{.title = fmt::format("--{} for the baseline{}{}", tuning.option,
                                   tuning.setting.empty() ? "" : ", ", tuning.setting),
              .alignment = {Column::left, Column::left, Column::left},
              .rows = {{tuning.option, is_accuracy ? "accuracy %" : "test loss", ""}}};
  for (std::size_t i = 0; i < tuning.values.size(); ++i) {
    const TuningAnswer::Value& value = tuning.values[i];
    const std::string mean = value.estimate ? value_in_words(value.estimate->mean, is_accuracy)
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
  std::vector<std::string> notes;
  for (const ResultEndRow& end : kResultEnds) {
    const std::vector<std::string> names = answer.names_of(end.value);
    if (!is_lost(end.value) || names.empty()) continue;
    const std::string chance =
        end.value == ResultEnd::never_learned || end.value == ResultEnd::unlearned
            ? fmt::format("; that share is {:.1f} %", answer.chance)
            : "";
    notes.push_back(
        fmt::format("{} ({}{}): {}", end.name, end.help, chance, fmt::join(names, ", ")));
  }
  for (const Answer::Run& run : answer.runs) {
    if (run.result.end == ResultEnd::failed) {
      notes.push_back(fmt::format("{}: {}", run.name, run.result.reason));
    }
  }
  return notes;
}

std::string limits_of(const Answer& answer) {
  const auto seeds = answer.seeds.size();
  if (seeds == 1) {
    return "What one seed cannot show: how much of a difference is chance. There is no interval "
           "and no test; --seed 1..5 has both.";
  }
  if (!answer.blindness) {
    return fmt::format("What {} seeds cannot show: nothing was compared with a baseline.", seeds);
  }
  const Answer::Blindness& blindness = *answer.blindness;
  const auto shown = [&](double value) { return value_in_words(value, answer.is_accuracy); };
  const std::string others =
      answer.comparisons == 1
          ? ""
          : fmt::format(
                " (the median of {} comparisons; {} where the runs vary least, {} where "
                "they vary most)",
                answer.comparisons, shown(blindness.least), shown(blindness.most));
  static_assert(kPower == 0.8, "one time in five");
  return fmt::format(
      "What {} seeds cannot show: a true difference to the baseline below {}{}{} is missed more "
      "often than one time in five, so that tied does not mean equal. The estimate is from the "
      "same {} seeds. So is the choice of the best, and its lead is overstated.",
      seeds, shown(blindness.middle), answer.is_accuracy ? " points" : "", others, seeds);
}

}  // namespace

AnswerDocument document_of(const Design& design, const Answer& answer,
                           std::span<const TuningAnswer> tuning) {
  AnswerDocument document{.facts = facts_of(design, answer, tuning),
                          .tables = overviews_of(answer)};
  for (const TuningAnswer& tuned : tuning) {
    document.tables.push_back(table_of(tuned, answer.is_accuracy));
  }
  std::vector<std::size_t> keys;
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    if (!is_condition(answer.columns[i])) keys.push_back(i);
  }
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    add_tables(document, design, answer, i, keys);
  }
  document.notes = notes_of(answer);
  document.limits = limits_of(answer);
  return document;
}

namespace {

// A message may consist of several lines.
std::string wrapped_lines(const std::string& text, LineWidth width) {
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += wrapped(text.substr(begin, end - begin), 0, width) + '\n';
    begin = end + 1;
  }
  return lines;
}

std::string escaped(std::string cell) {
  for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) {
    cell.insert(at, 1, '\\');
  }
  return cell;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += fmt::format(" {} |", escaped(cell));
  return row + '\n';
}

std::string markdown_table(const AnswerDocument::Table& table) {
  std::string text = fmt::format("\n## {}\n", table.title);
  text += markdown_row(table.rows.front());
  text += '|';
  for (const Column column : table.alignment) text += column == Column::right ? "--:|" : "---|";
  text += '\n';
  for (std::size_t i = 1; i < table.rows.size(); ++i) text += markdown_row(table.rows[i]);
  for (const std::string& note : table.notes) text += '\n' + note + '\n';
  return text;
}

}  // namespace

std::string to_text(const AnswerDocument& document, LineWidth width) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text += wrapped_lines(line, width);
  };
  add(document.facts);
  for (const auto& [title, alignment, keys, rows, notes, kind] : document.tables) {
    TextTable table(alignment, 2, keys);
    for (const std::vector<std::string>& row : rows) table.add(row);
    text += fmt::format("\n{}\n{}", fitted(title, width), table.text(width));
    add(notes);
  }
  if (!document.notes.empty()) text += '\n';
  add(document.notes);
  return text + '\n' + wrapped_lines(document.limits, width);
}

std::string to_markdown(const AnswerDocument& document) {
  std::string text = "# What `rubato compare` found\n";
  for (const std::string& fact : document.facts) text += fmt::format("- {}\n", fact);
  for (const AnswerDocument::Table& table : document.tables) text += markdown_table(table);
  if (!document.notes.empty()) text += "\n## Remarks on runs\n";
  for (const std::string& note : document.notes) text += fmt::format("- {}\n", note);
  return text + fmt::format("\n## Limits\n{}\n", document.limits);
}

}  // namespace rubato
