#include "result_state.hpp"

#include <string>
#include <type_traits>
#include <variant>

#include "train/record_schemas.hpp"

namespace rubato {

namespace {

constexpr const char* kFinalTest = "final_test.";
constexpr const char* kTestSamples = "final_test.samples";

void put_cell(State& state, const std::string& name, const Cell& cell) {
  std::visit(
      [&](const auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (StateElement<Value>) {
          state.put(name, value);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          // No text is none.
          if (!value.empty()) state.put_text(name, value);
        }
      },
      cell);
}

// What put_cell() put. Throws Error where that is damaged, or missing and not optional.
Cell cell_of(const State& state, const ColumnInfo& column, const std::string& name) {
  if (column.type == ColumnType::text) return state.has_text(name) ? state.text(name) : "";
  if (column.optional && !state.has(name)) return {};
  if (column.type == ColumnType::whole) return state.count(name);
  return state.value<double>(name);
}

}  // namespace

void put_result(State& state, const TrainResult& result) {
  for (const auto& column : result_schema().columns) {
    if (column.info().kept) put_cell(state, column.info().name, column.read(result));
  }
  if (!result.final_test) return;
  for (const auto& column : evaluation_schema().columns) {
    put_cell(state, kFinalTest + column.info().name, column.read(*result.final_test));
  }
}

void put_part(State& state, const EpochPart& part) {
  state.put("part.steps", part.steps);
  state.put("part.samples", part.samples);
  state.put("part.of_steps", part.of_steps);
}

std::optional<EpochPart> part_of(const State& state) {
  if (!state.has("part.steps")) return std::nullopt;
  return EpochPart{.steps = state.count("part.steps"),
                   .samples = state.count("part.samples"),
                   .of_steps = state.count("part.of_steps")};
}

TrainResult result_of(const State& state) {
  TrainResult result;
  for (const auto& column : result_schema().columns) {
    const ColumnInfo& info = column.info();
    if (info.kept) column.write(result, cell_of(state, info, info.name));
  }
  if (!state.has(kTestSamples)) return result;
  Evaluation& test = result.final_test.emplace();
  for (const auto& column : evaluation_schema().columns) {
    const ColumnInfo& info = column.info();
    column.write(test, cell_of(state, info, kFinalTest + info.name));
  }
  return result;
}

}  // namespace rubato
