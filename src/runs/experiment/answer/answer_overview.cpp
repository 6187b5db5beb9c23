#include "answer_overview.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "answer_columns.hpp"
#include "runs/experiment/design/runs.hpp"

namespace rubato {

namespace {

using Cell = Answer::Cell;
using Labels = std::vector<std::string>;

// Examples: "98.72 tied", "24.78, 3 lost", "4 of 5 lost".
std::string in_short(const Answer& answer, const Cell& cell) {
  const auto lost = std::ranges::count_if(
      cell.members, [&](std::size_t member) { return is_lost(answer.runs[member].result.end); });
  if (!cell.value) return fmt::format("{} of {} lost", lost, cell.runs);
  std::string text = value_in_words(cell.value->mean, answer.is_accuracy);
  if (cell.rank == Verdict::best || cell.rank == Verdict::tied) {
    text += fmt::format(" {}", name_of(*cell.rank));
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
    for (const Cell& cell : answer.cells) place_of(labels_of(cell, conditions_), groups_);
  }

  [[nodiscard]] std::vector<AnswerDocument::Table> tables() const {
    std::vector<AnswerDocument::Table> tables;
    if (own_conditions() < 2) return tables;
    for (const Labels& group : groups_) tables.push_back(table_of(group));
    tables.back().notes.push_back(
        "Tied: the seeds do not tell it from the best of the column. Lost: runs that diverged, "
        "ran out of devices, never learned, unlearned, failed or are missing.");
    return tables;
  }

 private:
  // The number of conditions that have more cells than the baseline.
  [[nodiscard]] std::size_t own_conditions() const {
    std::set<std::size_t> found;
    for (const Cell& cell : answer_.cells) {
      if (!cell.is_baseline) found.insert(cell.condition);
    }
    return found.size();
  }

  [[nodiscard]] static Labels labels_of(const Cell& cell, const std::vector<std::size_t>& columns) {
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
      for (const Cell& cell : answer_.cells) {
        if (labels_of(cell, conditions_) != group) continue;
        take(cell, place_of(labels_of(cell, choices_), rows),
             place_of({cell.labels[across_]}, columns));
      }
    };
    each_cell([&](const Cell& cell, std::size_t /*row*/, std::size_t column) {
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
    each_cell([&](const Cell& cell, std::size_t row, std::size_t column) {
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
