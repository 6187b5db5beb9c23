#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/core/check.hpp"
#include "loop/train/step/step_part.hpp"
#include "record_schemas.hpp"

namespace rubato {

namespace {

// Visits a number of that type, which may be missing if the column is optional.
template <class Number, class Visit>
Cell visited_number(StateVisitor& state, const std::string& name, bool optional, const Cell& cell,
                    Visit visit) {
  const Number* const now = std::get_if<Number>(&cell);
  if (optional && !state.has(name, now != nullptr)) return {};
  Number number = now == nullptr ? Number() : *now;
  visit(name, number);
  return number;
}

// Saves a cell, or returns the saved one. Empty text is not saved.
Cell visited(StateVisitor& state, const ColumnInfo& column, const std::string& name,
             const Cell& cell) {
  if (column.type == ColumnType::text) {
    const std::string* const now = std::get_if<std::string>(&cell);
    std::string text = now == nullptr ? "" : *now;
    if (state.has(name, !text.empty())) state.text(name, text);
    return text;
  }
  if (column.type == ColumnType::whole) {
    return visited_number<std::int64_t>(
        state, name, column.optional, cell,
        [&](const std::string& of, std::int64_t& count) { state.count(of, count); });
  }
  RUBATO_CHECK(column.type == ColumnType::real, "a column that a state can keep");
  return visited_number<double>(
      state, name, column.optional, cell,
      [&](const std::string& of, double& value) { state.value(of, value); });
}

template <class Column, class Record>
void visit_column(StateVisitor& state, const std::string& prefix, const Column& column,
                  Record& record) {
  const ColumnInfo& info = column.info();
  Cell cell = visited(state, info, prefix + info.name, column.read(record));
  if (state.loading()) column.write(record, std::move(cell));
}

void visit_test(StateVisitor& state, const std::string& prefix, std::optional<Evaluation>& test) {
  if (!state.has(prefix + "samples", test.has_value())) return;
  if (!test) test.emplace();
  for (const auto& column : evaluation_schema().columns) {
    visit_column(state, prefix, column, *test);
  }
}

}  // namespace

void visit_result(StateVisitor& state, TrainResult& result) {
  for (const auto& column : result_schema().columns) {
    if (column.info().kept) visit_column(state, "", column, result);
  }
  visit_test(state, "final_test.", result.final_test);
  for (const OtherWeightsInfo& weights : other_weights()) {
    TestsByWeights& tests = result.final_other_tests;
    const auto found = tests.find(weights.name);
    std::optional<Evaluation> test = found == tests.end() ? std::nullopt : found->second;
    visit_test(state, fmt::format("final_{}_test.", weights.name), test);
    if (test) tests.insert_or_assign(std::string(weights.name), test);
  }
}

void visit_part(StateVisitor& state, std::optional<EpochPart>& part) {
  if (!state.has("part.steps", part.has_value())) return;
  if (!part) part.emplace();
  state.count("part.steps", part->steps);
  state.count("part.samples", part->samples);
  state.count("part.of_steps", part->of_steps);
}

}  // namespace rubato
