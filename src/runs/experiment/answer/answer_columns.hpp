#pragma once

#include <functional>
#include <string>
#include <vector>

#include "answer.hpp"
#include "base/core/text/or_null.hpp"

namespace rubato {

/// The tables for people, of which each condition has one of either kind.
enum class AnswerTable { none, results, costs };

/// A column of what is said of each cell or each run. Everything that shows or writes an answer
/// takes its columns from here. They refer to the answer that they were made for.
template <class Row>
struct AnswerColumn {
  /// In CSV; empty where it is in JSON alone.
  std::string name{};
  /// In JSON: the keys below the row's object, "/spent/steps"; empty where it is in CSV alone.
  std::string json{};
  /// What it is, with its unit, as docs/compare.md has it; empty where it is as of the column
  /// before.
  std::string help{};
  /// Null where it is not known.
  std::function<nlohmann::ordered_json(const Row&)> value{};
  /// The table for people that has it, and what is above it there.
  AnswerTable table = AnswerTable::none;
  std::string heading{};
  /// What stands there; without it amount_in_words() of the value, at the right.
  std::function<std::string(const Row&)> words{};
};

/// Labels first: the options that tell cells apart.
[[nodiscard]] std::vector<AnswerColumn<Answer::Cell>> cell_columns(const Answer& answer);
[[nodiscard]] std::vector<AnswerColumn<Answer::Run>> run_columns(const Answer& answer);

/// What stands where nothing is known.
inline constexpr const char* kNothing = "-";

/// An accuracy in percent, or a loss, with the digits that it is worth.
[[nodiscard]] std::string value_in_words(double value, bool is_accuracy);
/// What is counted, with the digits that it is worth, or kNothing.
[[nodiscard]] std::string amount_in_words(const nlohmann::ordered_json& value);

}  // namespace rubato
