// A document is built in the order in which people read it: facts, overviews, all conditions
// together, tuning, and the tables of each condition. Cells of tables come from answer_columns.cpp;
// this file adds titles, sentences and order. The sentences about a condition are made once in
// add_tables() and used twice, as notes below its results and as a finding, which pages show at the
// top. to_text() and to_markdown() only lay out strings.

#include "answer_document.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "answer_columns.hpp"
#include "answer_facts.hpp"
#include "answer_summary.hpp"
#include "base/core/text/text.hpp"
#include "rate_curves.hpp"

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
  std::vector<const AnswerCell*> cells = answer.cells_of(condition);
  std::ranges::stable_sort(cells, [&](const AnswerCell* one, const AnswerCell* other) {
    if (!one->value || !other->value) return one->value.has_value() && !other->value.has_value();
    const double a = one->value->mean;
    const double b = other->value->mean;
    return answer.is_accuracy ? a > b : a < b;
  });
  return cells;
}

// The names of the cells for which `is_so`.
template <class Predicate>
Row named(std::span<const AnswerCell* const> cells, std::span<const std::size_t> keys,
          const Predicate& is_so) {
  Row names;
  for (const AnswerCell* const cell : cells) {
    if (!is_so(*cell)) continue;
    names.push_back(fmt::to_string(fmt::join(keys_of(*cell, keys), " ")));
  }
  return names;
}

// The names of the cells that have this rank.
Row named(std::span<const AnswerCell* const> cells, std::span<const std::size_t> keys,
          Verdict rank) {
  return named(cells, keys, [&](const AnswerCell& cell) { return cell.rank == rank; });
}

std::string best_in_words(std::span<const AnswerCell* const> cells,
                          std::span<const std::size_t> keys) {
  const Row best = named(cells, keys, Verdict::best);
  if (best.empty()) return {};
  std::string begin = fmt::format("Best: {}.", best.front());
  const bool any_untested = !named(cells, keys, Verdict::untested).empty();
  if (any_untested && cells.front()->runs == 1) {
    return begin + " One seed cannot tell it from the others.";
  }
  const Row tied = named(cells, keys, Verdict::tied);
  if (!tied.empty()) return fmt::format("{} Tied with it: {}.", begin, fmt::join(tied, ", "));
  if (any_untested) return begin;
  if (named(cells, keys, Verdict::worse).empty()) return begin + " No other has a value.";
  return begin + (named(cells, keys, Verdict::lost).empty()
                      ? " All others are worse."
                      : " All others that have a value are worse.");
}

// Says for which cells no test is defined although there are several seeds.
std::string untested_in_words(std::span<const AnswerCell* const> cells,
                              std::span<const std::size_t> keys) {
  if (cells.front()->runs == 1) return {};
  const auto untested_by = [&](std::optional<Verdict> AnswerCell::*verdict) {
    return named(cells, keys,
                 [&](const AnswerCell& cell) { return cell.*verdict == Verdict::untested; });
  };
  std::string words;
  for (const auto& [names, other] :
       {std::pair(untested_by(&AnswerCell::rank), "the best"),
        std::pair(untested_by(&AnswerCell::verdict), "the baseline")}) {
    if (names.empty()) continue;
    words += fmt::format("{}Not tested against {}: {}.", words.empty() ? "" : " ", other,
                         fmt::join(names, ", "));
  }
  if (!words.empty()) {
    words +=
        " The difference is the same for every seed, so nothing says how much of it is chance; "
        "more seeds would.";
  }
  return words;
}

std::string lost_in_words(std::span<const AnswerCell* const> cells,
                          std::span<const std::size_t> keys) {
  const Row lost = named(cells, keys, Verdict::lost);
  return lost.empty() ? std::string() : fmt::format("Lost: {}.", fmt::join(lost, ", "));
}

// Says which cells are behind the best of their condition by less than the margin; empty if none is
// tested.
std::string near_best_in_words(std::span<const AnswerCell* const> cells,
                               std::span<const std::size_t> keys) {
  const auto having = [&](Verdict verdict) {
    return named(cells, keys, [&](const AnswerCell& cell) {
      return cell.margin_to_best && cell.margin_to_best->verdict == verdict;
    });
  };
  const Row near = having(Verdict::non_inferior);
  if (!near.empty()) return fmt::format("Non-inferior to the best: {}.", fmt::join(near, ", "));
  return having(Verdict::not_shown).empty() ? "" : "No other is shown to be non-inferior to it.";
}

std::string points(double value, bool is_accuracy) {
  return value_in_words(value, is_accuracy) + (is_accuracy ? " points" : "");
}

// The tests of the margin, for a condition with any.
std::optional<Table> margins_of(const Answer& answer, std::span<const AnswerCell* const> cells,
                                std::span<const std::size_t> keys) {
  std::set<double> margins;
  for (const AnswerCell* const cell : cells) {
    for (const auto& test : {cell->margin_to_baseline, cell->margin_to_best}) {
      if (test) margins.insert(test->margin);
    }
  }
  if (margins.empty()) return std::nullopt;
  Table table = table_of(answer, AnswerTable::margins, cells, keys);
  table.title =
      fmt::format("{}: non-inferior by a margin of {}", answer.conditions[cells.front()->condition],
                  points(*margins.begin(), answer.is_accuracy));
  if (margins.size() > 1) {
    table.title += fmt::format(" to {}", points(*margins.rbegin(), answer.is_accuracy));
  }
  return table;
}

// The note below the first table of margins.
std::string margin_note(const Answer& answer) {
  const bool any_lost = std::ranges::any_of(answer.cells, [](const AnswerCell& cell) {
    return cell.margin_to_best && cell.margin_to_best->verdict == Verdict::lost;
  });
  const bool any_untested =
      answer.seeds.size() > 1 && std::ranges::any_of(answer.cells, [](const AnswerCell& cell) {
        const auto is_untested = [](const std::optional<Answer::AgainstMargin>& test) {
          return test && test->verdict == Verdict::untested;
        };
        return is_untested(cell.margin_to_best) || is_untested(cell.margin_to_baseline);
      });
  return fmt::format(
      "At most: the upper end of the one-sided 95 % interval of how far it is behind. Seeds: the "
      "number with which such a test passes an equal one four times in five, if the differences "
      "vary as they do here; for few seeds, two more.{}{}",
      any_untested ? " Untested: it is behind by the same for every seed, for which the test is "
                     "not defined."
                   : "",
      any_lost ? " A lost run is a rank, the worst, and no number: its cell is not non-inferior."
               : "");
}

void add_tables(AnswerDocument& document, const Design& design, const Answer& answer,
                std::size_t condition, std::span<const std::size_t> keys) {
  const std::vector<const AnswerCell*> cells = ranked(answer, condition);
  const bool baseline =
      std::ranges::all_of(cells, [](const AnswerCell* cell) { return cell->is_baseline; });
  Table results = table_of(answer, AnswerTable::results, cells, keys);
  results.title = answer.conditions[condition] + (baseline ? ", the baseline" : "");
  results.notes = {best_in_words(cells, keys), untested_in_words(cells, keys),
                   near_best_in_words(cells, keys)};
  std::vector<std::string> finding = results.notes;
  finding.push_back(lost_in_words(cells, keys));
  std::erase(finding, "");
  if (!baseline && !finding.empty()) {
    document.findings.push_back(
        fmt::format("{}: {}", answer.conditions[condition], fmt::join(finding, " ")));
  }
  results.notes.push_back(constant_in_words(answer, condition));
  const bool is_first = std::ranges::find(document.tables, AnswerTable::results, &Table::kind) ==
                        document.tables.end();
  if (is_first && !answer.untuned.empty()) {
    results.notes.push_back(fmt::format("{} {}, so that another rate may change the verdict.",
                                        kUntunedMark, answer.untuned));
  }
  std::optional<Table> margins;
  if (answer.margin && !baseline) {
    margins = margins_of(answer, cells, keys);
    if (!margins) {
      results.notes.emplace_back(
          "There is no margin: the baseline has a lost run, one seed or no deviation.");
    } else if (std::ranges::find(document.tables, AnswerTable::margins, &Table::kind) ==
               document.tables.end()) {
      margins->notes = {margin_note(answer)};
    }
  }
  Table costs = table_of(answer, AnswerTable::costs, cells, keys);
  costs.title = results.title + ": what it took";
  costs.notes = {off_budget_in_words(design, cells, keys)};
  std::erase(results.notes, "");
  std::erase(costs.notes, "");
  document.tables.push_back(std::move(results));
  if (margins) document.tables.push_back(*std::move(margins));
  document.tables.push_back(std::move(costs));
}

Table table_of(const TuningAnswer& tuning, TuneFor subject) {
  const bool is_accuracy = tuning.is_accuracy;
  Table table{.title = fmt::format("--{} for {}{}{}", tuning.option,
                                   subject == TuneFor::baseline ? "the baseline" : "",
                                   subject == TuneFor::each || tuning.setting.empty() ? "" : ", ",
                                   tuning.setting),
              .alignment = {Column::left, Column::left, Column::left},
              .rows = {{tuning.option, is_accuracy ? "accuracy %" : "test loss", ""}}};
  for (std::size_t i = 0; i < tuning.values.size(); ++i) {
    const TuningAnswer::Value& value = tuning.values[i];
    std::string mean = fmt::to_string(fmt::join(value.ends, ", "));
    if (value.estimate) {
      const std::string number = value_in_words(value.estimate->mean, is_accuracy);
      mean = value.is_lost ? fmt::format("{} ({})", number, mean) : number;
    }
    table.rows.push_back({value.value, mean, i == tuning.best ? "taken" : ""});
  }
  if (tuning.at_end) {
    table.notes.push_back(
        fmt::format("{} is at an end of what was tried: a better one may lie beyond.",
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
  if (!answer.blindness && answer.comparisons > 0) {
    return fmt::format(
        "What {} seeds cannot show: how much of a difference to the baseline is chance, as each "
        "difference is the same for every seed.",
        seeds);
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

// Says that findings about rules move with the size of a network; empty for a single rule.
std::string size_in_words(const Answer& answer) {
  std::set<std::string> rules;
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    if (answer.columns[i] != "rule") continue;
    for (const AnswerCell& cell : answer.cells) rules.insert(cell.labels[i]);
  }
  if (rules.size() < 2) return {};
  return " The order of rules, and the rates that they bear, move with the size of a network "
         "(docs/findings.md, \"Does it transfer?\").";
}

}  // namespace

AnswerDocument document_of(const Design& design, const Answer& answer,
                           std::span<const TuningAnswer> tuning) {
  AnswerDocument document{.facts = facts_of(design, answer, tuning),
                          .tables = overviews_of(answer)};
  std::vector<std::size_t> keys;
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    if (!is_condition(answer.columns[i])) keys.push_back(i);
  }
  if (answer.together) document.tables.push_back(table_of(*answer.together, answer));
  for (const TuningAnswer& tuned : tuning) {
    document.tables.push_back(table_of(tuned, design.tune_for));
  }
  if (!answer.rates.empty()) document.tables.push_back(rates_table(answer));
  for (std::size_t i = 0; i < answer.conditions.size(); ++i) {
    add_tables(document, design, answer, i, keys);
  }
  document.notes = notes_of(answer);
  document.limits = limits_of(answer) + size_in_words(answer);
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
