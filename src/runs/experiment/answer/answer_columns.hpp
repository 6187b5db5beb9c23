#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "answer.hpp"
#include "base/core/text/json.hpp"
#include "loop/train/record_schemas.hpp"
#include "runs/experiment/design/design.hpp"
#include "runs/report/report_schemas.hpp"
#include "tuning_answer.hpp"

namespace rubato {

/// The kinds of printed tables; each condition has one of each kind. `none` is a column that is not
/// printed.
enum class AnswerTable { none, results, margins, costs };

/// A column with a fact about each cell or each run. Everything that shows or writes an answer
/// takes its columns from here, and the schema of answer.json is checked against them. A column
/// refers to the answer that it was made for, which must outlive it.
template <class Row>
struct AnswerColumn {
  /// Its name is that in CSV; a column that is not `shown` is in CSV only.
  RecordColumn<Row> record;
  /// The printed table that shows it, and its heading there.
  AnswerTable table = AnswerTable::none;
  std::string heading{};
  /// Text of the cell in the printed table. Without it, the table shows amount_in_words() of the
  /// value, aligned to the right.
  std::function<std::string(const Row&)> words{};
  /// False for a column that is in JSON only.
  bool in_csv = true;

  [[nodiscard]] const std::string& name() const { return record.info().name; }
  /// The value for programs; null if it is not known.
  [[nodiscard]] nlohmann::ordered_json value(const Row& row) const {
    return json_of(record.read(row));
  }
};

/// The columns of cells and of runs; the labels, which are the options that tell cells apart, come
/// first.
[[nodiscard]] std::vector<AnswerColumn<Answer::Cell>> cell_columns(const Answer& answer);
[[nodiscard]] std::vector<AnswerColumn<Answer::Run>> run_columns(const Answer& answer);

/// Shown in place of an unknown value.
inline constexpr const char* kNothing = "-";
/// Shown behind a verdict at a learning rate that was not tuned (Answer::untuned).
inline constexpr const char* kUntunedMark = "*";

/// Formats an accuracy in percent (two decimals) or a loss (four significant digits).
[[nodiscard]] std::string value_in_words(double value, bool is_accuracy);
/// Formats a count or an amount with the digits that are significant; kNothing for null.
[[nodiscard]] std::string amount_in_words(const nlohmann::ordered_json& value);

/// A line for each cell. Unknown values are empty; differences are those to the baseline.
[[nodiscard]] std::string cells_csv(const Answer& answer);
/// A line for each run, including the seconds that it took on this machine.
[[nodiscard]] std::string runs_csv(const Answer& answer);
/// The whole answer without these seconds, so that its text does not depend on the machine.
[[nodiscard]] std::string to_json(const Design& design, const Answer& answer,
                                  std::span<const TuningAnswer> tuning);

}  // namespace rubato
