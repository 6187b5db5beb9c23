// This file has the facts about what was compared, remarks on conditions and the overviews, which
// answer_document.cpp combines with the results. More than four seeds become a range if they are
// consecutive, and of more than four baselines only what they have in common is named. An overview
// goes through the cells twice: the first pass finds the rows and columns, and the columns that
// only a baseline has; the second writes the entries.

#include "answer_facts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/parse.hpp>

#include "answer_columns.hpp"
#include "base/core/vectors.hpp"
#include "runs/config/run_option.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "runs/experiment/design/value_list.hpp"

namespace rubato {

namespace {

using AnswerCell = Answer::Cell;

// More seeds or baselines than this are summarized instead of listed one by one.
constexpr std::size_t kListed = 4;
// Runs spend their budget in whole steps, so a relative difference up to this is ignored.
constexpr double kTolerance = 0.01;

std::string joined(const std::vector<std::string>& words) {
  return fmt::to_string(fmt::join(words, ", "));
}

// "model softmax, data digits"; an option that varies within the experiment is left out.
std::string subject_of(const Design& design, const Answer& answer) {
  std::vector<std::string> words;
  for (const std::string_view option : {"model", "data"}) {
    if (is_axis(design, option) || (option == "data" && !answer.is_accuracy)) continue;
    words.push_back(
        fmt::format("{} {}", option, labels_of(option, values_of(design, option)).front()));
  }
  return joined(words);
}

std::string limits_in_words(const Design& design) {
  const auto words =
      vector_of(limits_of(design), [](const RunBudget& limit) { return describe(limit); });
  if (words.empty()) return "no budget in common";
  return fmt::format("each run: {}{}", fmt::join(words, " or "),
                     words.size() > 1 ? ", whichever is first" : "");
}

// Examples: "1, 2, 5" and "1..40".
std::string seeds_in_words(const std::vector<std::string>& seeds) {
  if (seeds.size() <= kListed) return joined(seeds);
  for (std::size_t i = 1; i < seeds.size(); ++i) {
    if (std::stoull(seeds[i]) != std::stoull(seeds[i - 1]) + 1) return joined(seeds);
  }
  return fmt::format("{}..{}", seeds.front(), seeds.back());
}

// "baseline: trace 128, rule constant"; if there are many, what they have in common.
std::string baselines_in_words(const Answer& answer) {
  const auto baselines =
      pointers_to(answer.cells, [](const AnswerCell& cell) { return cell.is_baseline; });
  const auto labelled = [&](const AnswerCell& cell, std::size_t column) {
    return fmt::format("{} {}", answer.columns[column], cell.labels[column]);
  };
  if (baselines.size() <= kListed) {
    std::vector<std::string> all;
    for (const AnswerCell* const baseline : baselines) {
      std::vector<std::string> labels;
      for (std::size_t i = 0; i < answer.columns.size(); ++i) {
        labels.push_back(labelled(*baseline, i));
      }
      all.push_back(joined(labels));
    }
    return fmt::format("baseline: {}", fmt::join(all, "; "));
  }
  std::vector<std::string> same;
  std::vector<std::string> different;
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    const bool equal = std::ranges::all_of(baselines, [&](const AnswerCell* baseline) {
      return baseline->labels[i] == baselines.front()->labels[i];
    });
    if (equal) {
      same.push_back(labelled(*baselines.front(), i));
    } else {
      different.push_back(answer.columns[i]);
    }
  }
  return fmt::format("{} baselines: {}; one for each {}", baselines.size(), joined(same),
                     fmt::join(different, " and "));
}

// The options of the baseline alone, apart from those of which the cells say the values: " (with lr
// 0.5)".
std::string own_options_in_words(const Design& design, const Answer& answer) {
  std::vector<std::string> own;
  for (const auto& [option, value] : design.baseline) {
    if (std::ranges::find(answer.columns, option) != answer.columns.end()) continue;
    own.push_back(fmt::format("{} {}", option, value));
  }
  return own.empty() ? "" : fmt::format(" (with {})", joined(own));
}

std::string margin_in_words(const Answer& answer) {
  if (!answer.margin) return {};
  const std::string unit = answer.is_accuracy ? " points" : "";
  return fmt::format(
      "margin: {}; non-inferior is what is behind by less, with a one-sided p-value "
      "(Holm) of at most 5 %",
      answer.margin->amount ? fmt::format("{}{}", *answer.margin->amount, unit)
                            : "one standard deviation of the baseline over the seeds");
}

std::vector<std::string> tuned_in_words(const Design& design,
                                        std::span<const TuningAnswer> tuning) {
  std::vector<std::string> lines;
  if (!tuning.empty() && design.tune_for == TuneFor::each) {
    lines.push_back(fmt::format("{} tuned for each combination by itself; each has a table below",
                                tuning.front().option));
    return lines;
  }
  if (tuning.size() > kListed) {
    lines.push_back(
        fmt::format("{} tuned for each of {} baselines and used by all that are compared with it; "
                    "each has a table below",
                    tuning.front().option, tuning.size()));
    return lines;
  }
  for (const TuningAnswer& tuned : tuning) {
    lines.push_back(fmt::format(
        "{} {}{}{}, tuned for the baseline and used by all{}", tuned.option,
        tuned.values[tuned.best].value, tuned.setting.empty() ? "" : " with ", tuned.setting,
        tuned.at_end ? " (at an end of what was tried: a better one may lie beyond)" : ""));
  }
  return lines;
}

// The amount that a cell has spent of a kind of budget.
std::optional<double> spent_of(const Answer::Spent& spent, std::string_view kind) {
  if (kind == "epochs") return spent.epochs;
  if (kind == "samples") return spent.samples;
  if (kind == "iterations") return spent.iterations;
  return kind == "hours" ? spent.hours : spent.money;
}

}  // namespace

std::vector<std::string> facts_of(const Design& design, const Answer& answer,
                                  std::span<const TuningAnswer> tuning) {
  std::vector<std::string> facts{
      subject_of(design, answer),
      fmt::format("{}; seed{} {}", limits_in_words(design), answer.seeds.size() == 1 ? "" : "s",
                  seeds_in_words(answer.seeds)),
      baselines_in_words(answer) + own_options_in_words(design, answer)};
  facts.push_back(margin_in_words(answer));
  facts.push_back(answer.untuned);
  std::ranges::move(tuned_in_words(design, tuning), std::back_inserter(facts));
  std::erase(facts, "");
  return facts;
}

std::string constant_in_words(const Answer& answer, std::size_t condition) {
  const auto trace = std::ranges::find(answer.columns, kTraceOption);
  std::optional<Elasticity> met;
  for (const AnswerCell& cell : answer.cells) {
    if (cell.condition != condition) continue;
    const auto& label = cell.labels[static_cast<std::size_t>(trace - answer.columns.begin())];
    if (is_number(label) || !cell.elasticity || !cell.elasticity->is_constant()) return {};
    if (met && *met != *cell.elasticity) return {};
    met = cell.elasticity;
  }
  if (!met) return {};
  return fmt::format(
      "Nothing changed here: in what these runs used of the trace, every step had a batch of {} on "
      "{} core{}. More epochs, or another trace, would show what changes do.",
      met->most_batch, met->most_cores, met->most_cores == 1 ? "" : "s");
}

std::string off_budget_in_words(const Design& design, std::span<const AnswerCell* const> cells,
                                std::span<const std::size_t> columns) {
  const std::vector<RunBudget> limits = limits_of(design);
  if (limits.size() != 1) return {};
  const double allowed = std::stod(limits.front().amount);
  std::vector<std::string> off;
  for (const AnswerCell* const cell : cells) {
    if (!cell->spent) continue;
    const auto spent = spent_of(*cell->spent, limits.front().kind);
    if (!spent || std::abs(*spent - allowed) <= kTolerance * allowed) continue;
    const auto labels =
        vector_of(columns, [&](std::size_t column) { return cell->labels[column]; });
    off.push_back(fmt::format("{} spent {:.4g} ({:+.0f} %)", fmt::join(labels, " "), *spent,
                              100 * (*spent / allowed - 1)));
  }
  if (off.empty()) return {};
  return fmt::format("Not what the budget of {} allows: {}.", describe(limits.front()),
                     joined(off));
}

namespace {

using AnswerCell = Answer::Cell;
using Labels = std::vector<std::string>;

// Examples: "98.72 tied", "24.78, 3 lost", "4 of 5 lost".
std::string in_short(const Answer& answer, const AnswerCell& cell) {
  const std::int64_t lost = answer.lost_in(cell);
  if (!cell.value) return fmt::format("{} of {} lost", lost, cell.runs);
  std::string text = value_in_words(cell.value->mean, answer.is_accuracy);
  if (cell.rank == Verdict::best || cell.rank == Verdict::tied) {
    text += fmt::format(" {}{}", name_of(*cell.rank), answer.untuned.empty() ? "" : kUntunedMark);
  }
  return lost == 0 ? text : fmt::format("{}, {} lost", text, lost);
}

// The index of `labels` in `all`; new labels are appended.
std::size_t place_of(const Labels& labels, std::vector<Labels>& all) {
  const auto found = std::ranges::find(all, labels);
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  all.push_back(labels);
  return all.size() - 1;
}

class Overviews {
 public:
  explicit Overviews(const Answer& answer) : answer_(answer) {
    for (std::size_t i = 0; i < answer.columns.size(); ++i) {
      (is_condition(answer.columns[i]) ? conditions_ : choices_).push_back(i);
    }
    const auto trace = std::ranges::find(
        conditions_, "trace", [&](std::size_t i) { return std::string_view(answer.columns[i]); });
    if (conditions_.empty()) return;
    across_ = trace != conditions_.end() ? *trace : conditions_.front();
    std::erase(conditions_, across_);
    for (const AnswerCell& cell : answer.cells) place_of(labels_of(cell, conditions_), groups_);
  }

  [[nodiscard]] std::vector<AnswerDocument::Table> tables() const {
    std::vector<AnswerDocument::Table> tables;
    if (answer_.own_conditions().size() < 2) return tables;
    for (const Labels& group : groups_) tables.push_back(table_of(group));
    tables.back().notes.push_back(
        "Tied: the seeds do not tell it from the best of the column. Lost: runs that diverged, "
        "ran out of devices, never learned, unlearned, failed or are missing.");
    return tables;
  }

 private:
  [[nodiscard]] static Labels labels_of(const AnswerCell& cell,
                                        const std::vector<std::size_t>& columns) {
    Labels labels;
    for (const std::size_t column : columns) labels.push_back(cell.labels[column]);
    return labels;
  }

  [[nodiscard]] std::string title_of(const Labels& group) const {
    std::string title = "Overview";
    for (std::size_t i = 0; i < group.size(); ++i) {
      title += fmt::format(", {} {}", answer_.columns[conditions_[i]], group[i]);
    }
    return title + (answer_.is_accuracy ? ": accuracy %" : ": test loss");
  }

  [[nodiscard]] AnswerDocument::Table table_of(const Labels& group) const {
    std::vector<Labels> rows;
    std::vector<Labels> columns;
    std::vector<bool> only_baseline;
    const auto each_cell = [&](const auto& take) {
      for (const AnswerCell& cell : answer_.cells) {
        if (labels_of(cell, conditions_) != group) continue;
        take(cell, place_of(labels_of(cell, choices_), rows),
             place_of({cell.labels[across_]}, columns));
      }
    };
    each_cell([&](const AnswerCell& cell, std::size_t /*row*/, std::size_t column) {
      only_baseline.resize(columns.size(), true);
      if (!cell.is_baseline) only_baseline[column] = false;
    });
    AnswerDocument::Table table{.title = title_of(group), .keys = choices_.size()};
    Labels header;
    for (const std::size_t column : choices_) header.push_back(answer_.columns[column]);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      header.push_back(columns[i].front() + (only_baseline[i] ? ", baseline" : ""));
    }
    table.alignment.assign(header.size(), Column::left);
    table.rows.push_back(header);
    for (const Labels& row : rows) {
      table.rows.push_back(row);
      table.rows.back().resize(header.size());
    }
    each_cell([&](const AnswerCell& cell, std::size_t row, std::size_t column) {
      table.rows[row + 1][choices_.size() + column] = in_short(answer_, cell);
    });
    return table;
  }

  const Answer& answer_;
  // Indices of Answer::columns: the choices, the conditions, and the condition whose values are the
  // columns of the tables.
  std::vector<std::size_t> choices_;
  std::vector<std::size_t> conditions_;
  std::size_t across_ = 0;
  // Labels of the other conditions: one table each.
  std::vector<Labels> groups_;
};

}  // namespace

std::vector<AnswerDocument::Table> overviews_of(const Answer& answer) {
  return Overviews(answer).tables();
}

}  // namespace rubato
