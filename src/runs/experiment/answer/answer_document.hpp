#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "answer.hpp"
#include "answer_columns.hpp"
#include "base/core/tables/text_table.hpp"
#include "runs/experiment/design/design.hpp"

namespace rubato {

/// What people read of an answer, before it is put on a terminal or on a page.
struct AnswerDocument {
  struct Table {
    std::string title{};
    std::vector<Column> alignment{};
    /// The first of the columns, which say what a row is of.
    std::size_t keys = 1;
    /// The first is the header.
    std::vector<std::vector<std::string>> rows{};
    /// Stands below it; may be empty.
    std::vector<std::string> notes{};
    /// Of a condition; none of those that come before.
    AnswerTable kind = AnswerTable::none;
  };

  /// What was compared: a line each.
  std::vector<std::string> facts;
  /// The answer in short: a sentence for each condition but a baseline's own.
  std::vector<std::string> findings{};
  /// The overviews (overviews_of()), what was tuned, and for each condition two: results, and what
  /// they took.
  std::vector<Table> tables{};
  /// Runs that came to no result, or to one that needs a word.
  std::vector<std::string> notes{};
  /// What the seeds cannot show.
  std::string limits{};
};

[[nodiscard]] AnswerDocument document_of(const Design& design, const Answer& answer,
                                         std::span<const TuningAnswer> tuning);

[[nodiscard]] std::string to_text(const AnswerDocument& document, LineWidth width = {});
[[nodiscard]] std::string to_markdown(const AnswerDocument& document);

}  // namespace rubato
