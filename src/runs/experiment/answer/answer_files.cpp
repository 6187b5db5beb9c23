#include "answer_files.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "answer_columns.hpp"
#include "base/core/tables/csv_field.hpp"
#include "base/core/text/or_null.hpp"
#include "runs/config/run_option.hpp"
#include "runs/experiment/design/labels.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

std::string csv_of(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return csv_field(value.get<std::string>());
  return value.is_number_float() ? fmt::to_string(value.get<double>()) : json_text(value);
}

template <class Row>
std::string csv_of(const std::vector<AnswerColumn<Row>>& columns, const std::vector<Row>& rows) {
  std::string text;
  const auto add_line = [&](const auto& field_of) {
    std::vector<std::string> fields;
    for (const AnswerColumn<Row>& column : columns) {
      if (!column.name.empty()) fields.push_back(field_of(column));
    }
    text += fmt::format("{}\n", fmt::join(fields, ","));
  };
  add_line([](const auto& column) { return csv_field(column.name); });
  for (const Row& row : rows) {
    add_line([&](const auto& column) { return csv_of(column.value(row)); });
  }
  return text;
}

template <class Row>
Json json_of(const std::vector<AnswerColumn<Row>>& columns, const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) {
    Json& object = all.emplace_back(Json::object());
    for (const AnswerColumn<Row>& column : columns) {
      if (!column.json.empty()) object[Json::json_pointer(column.json)] = column.value(row);
    }
    // A part of which nothing is known is null.
    for (Json& part : object) {
      const auto is_null = [](const Json& value) { return value.is_null(); };
      if (part.is_object() && std::ranges::all_of(part, is_null)) part = nullptr;
    }
  }
  return all;
}

Json estimate_json(const Estimate& estimate) {
  return {{"mean", estimate.mean},
          {"deviation", estimate.deviation},
          {"half_width", or_null(estimate.half_width)},
          {"count", estimate.count}};
}

Json tuning_json(const TuningAnswer& tuning) {
  Json values = Json::array();
  for (const auto& [value, estimate, ends] : tuning.values) {
    values.push_back({{"value", value},
                      {"estimate", estimate ? estimate_json(*estimate) : Json()},
                      {"ends", ends}});
  }
  return {{"option", tuning.option},
          {"setting", tuning.setting},
          {"taken", tuning.values[tuning.best].value},
          {"at_end", tuning.at_end},
          {"values", std::move(values)}};
}

}  // namespace

std::string cells_csv(const Answer& answer) {
  return csv_of(cell_columns(answer), answer.cells);
}

std::string runs_csv(const Answer& answer) {
  return csv_of(run_columns(answer), answer.runs);
}

std::string to_json(const Design& design, const Answer& answer,
                    std::span<const TuningAnswer> tuning) {
  Json axes = Json::object();
  for (const auto& [option, values] : design.axes) axes[option] = labels_of(option, values);
  Json json{{"measure", answer.is_accuracy ? "test accuracy in percent" : "test loss"},
            {"axes", std::move(axes)},
            {"budget", design.budget.amount.empty()
                           ? Json()
                           : Json(design.budget.kind + "=" + design.budget.amount)},
            {"target", or_null(answer.target)},
            {"level", kLevel},
            {"comparisons", answer.comparisons},
            {"chance", answer.chance},
            {"tuning", Json::array()},
            {"cells", json_of(cell_columns(answer), answer.cells)},
            {"runs", json_of(run_columns(answer), answer.runs)}};
  for (const TuningAnswer& tuned : tuning) json["tuning"].push_back(tuning_json(tuned));
  json["detectable"] = answer.blindness ? Json{{"power", kPower},
                                               {"deviations", answer.blindness->effect},
                                               {"least", answer.blindness->least},
                                               {"median", answer.blindness->middle},
                                               {"most", answer.blindness->most}}
                                        : Json();
  return json_text(json, 2) + '\n';
}

}  // namespace rubato
