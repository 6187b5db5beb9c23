#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "answer.hpp"
#include "answer_columns.hpp"
#include "base/core/text/text_table.hpp"
#include "runs/experiment/design/design.hpp"
#include "tuning_answer.hpp"

namespace rubato {

/// The printed form of an answer, independent of whether it goes to a terminal or to a page.
struct AnswerDocument {
  struct Table {
    std::string title{};
    std::vector<Column> alignment{};
    /// Number of leading columns that identify a row.
    std::size_t keys = 1;
    /// Cells of each row; the first row is the header.
    std::vector<std::vector<std::string>> rows{};
    /// Paragraphs below the table; may be empty.
    std::vector<std::string> notes{};
    /// Kind of a condition's table; `none` for the tables that precede those of the conditions.
    AnswerTable kind = AnswerTable::none;
  };

  /// Facts about what was compared, one line each.
  std::vector<std::string> facts;
  /// The answer in short: sentences for each condition except one that only the baseline has.
  std::vector<std::string> findings{};
  /// The overviews (overviews_of()), all conditions together, the tables of tuning, and for each
  /// condition its results, the tests of the margin, and what it cost.
  std::vector<Table> tables{};
  /// Remarks on runs without a result, or with one that needs an explanation.
  std::vector<std::string> notes{};
  /// The limits of what these seeds can show.
  std::string limits{};
};

[[nodiscard]] AnswerDocument document_of(const Design& design, const Answer& answer,
                                         std::span<const TuningAnswer> tuning);

[[nodiscard]] std::string to_text(const AnswerDocument& document, LineWidth width = {});
[[nodiscard]] std::string to_markdown(const AnswerDocument& document);

}  // namespace rubato
