// The rows of the schemas (docs/adr/0055) become three things here: descriptions of all records
// (record_infos()), a JSON Schema, and the JSON of a record, cell by cell. A column lies in the
// record itself or in an object of it, and may be optional, null or left out at its usual value.
// put_cell() decides by these flags what is written, and record_schema() what is required, so both
// must agree.

#include "report_schemas.hpp"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include <rubato/base/spec.hpp>

#include "base/core/text/json.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

template <class Record>
RecordInfo info_of(const RecordSchema<Record>& schema, bool is_metrics_line) {
  RecordInfo info{.name = schema.name, .help = schema.help, .is_metrics_line = is_metrics_line};
  for (const RecordColumn<Record>& column : schema.columns) {
    if (column.info().shown) info.columns.push_back(column.info());
  }
  return info;
}

// Numbers may be null: that is how a number that is not finite is written.
Json number_schema() {
  return {{"type", {"number", "null"}}};
}

Json type_schema(const ColumnInfo& column) {
  const auto one = [&](const char* type) -> Json {
    return {{"type", column.null_if_none ? Json({type, "null"}) : Json(type)}};
  };
  switch (column.type) {
    case ColumnType::whole:
      return one("integer");
    case ColumnType::real:
      return number_schema();
    case ColumnType::flag:
      return one("boolean");
    case ColumnType::text:
      return one("string");
    case ColumnType::wholes:
      return {{"type", "array"}, {"items", {{"type", "integer"}}}};
    case ColumnType::numbers:
      return {{"type", "object"}, {"additionalProperties", number_schema()}};
    case ColumnType::texts:
      break;
  }
  return {{"type", "object"}, {"additionalProperties", {{"type", {"string", "null"}}}}};
}

Json column_schema(const ColumnInfo& column) {
  Json json = type_schema(column);
  json["description"] = column.help;
  json["column"] = column.name;
  if (!column.unit.empty()) json["unit"] = column.unit;
  if (!column.tag.empty()) json["tensorboard"] = column.tag;
  return json;
}

void require(Json& object, const std::string& key) {
  for (const Json& known : object["required"]) {
    if (known == key) return;
  }
  object["required"].push_back(key);
}

Json object_schema() {
  return {{"type", "object"},
          {"properties", Json::object()},
          {"required", Json::array()},
          {"additionalProperties", false}};
}

}  // namespace

nlohmann::ordered_json record_schema(const RecordInfo& record) {
  Json json = object_schema();
  json["description"] = record.help;
  if (record.is_metrics_line) {
    json["properties"]["kind"] = {{"const", record.name}};
    require(json, "kind");
  }
  for (const ColumnInfo& column : record.columns) {
    const bool always = column.null_if_none || !(column.optional || column.usual);
    if (column.object.empty()) {
      json["properties"][column.json_key()] = column_schema(column);
      if (always && column.type != ColumnType::numbers) require(json, column.json_key());
      continue;
    }
    Json& object = json["properties"][column.object];
    if (object.is_null()) object = object_schema();
    object["properties"][column.json_key()] = column_schema(column);
    if (always) require(object, column.json_key());
    if (column.null_if_none) object["type"] = {"object", "null"};
    if (!column.object_optional || column.null_if_none) require(json, column.object);
  }
  return json;
}

const RecordSchema<OwnMetrics>& own_schema() {
  static const RecordSchema<OwnMetrics> schema{
      .name = "own",
      .help =
          "Values that a callback in Python returned; the line follows that of the step or the "
          "epoch.",
      .columns = {{{.name = "step", .help = "index of the step"},
                   [](const OwnMetrics& own) {
                     return own.of == "step" ? std::optional(own.index) : std::nullopt;
                   }},
                  {{.name = "epoch", .help = "index of the epoch"},
                   [](const OwnMetrics& own) {
                     return own.of == "epoch" ? std::optional(own.index) : std::nullopt;
                   }},
                  {{.name = "lr", .help = "learning rate that it set from the next step on"},
                   &OwnMetrics::learning_rate},
                  {{.name = "*", .help = "its numbers, under their names", .key = "metrics"},
                   [](const OwnMetrics& own) {
                     return std::vector<NamedNumber>(own.values.begin(), own.values.end());
                   }}}};
  return schema;
}

const RecordSchema<EvaluationReport>& evaluation_report_schema() {
  static const RecordSchema<EvaluationReport> schema = [] {
    RecordSchema<EvaluationReport> report{.name = "evaluation", .help = evaluation_schema().help};
    add_part(report.columns, evaluation_schema().columns, &EvaluationReport::evaluation,
             [](ColumnInfo& info) { info.tag.clear(); });
    report.columns.push_back(
        {{.name = "top_k", .help = "the K of `top_k_accuracy`"}, &EvaluationReport::top_k});
    return report;
  }();
  return schema;
}

const std::vector<RecordInfo>& record_infos() {
  static const std::vector<RecordInfo> infos{
      info_of(step_schema(), true),     info_of(minibatch_schema(), true),
      info_of(epoch_schema(), true),    info_of(fault_schema(), true),
      info_of(monitor_schema(), true),  info_of(own_schema(), true),
      info_of(summary_schema(), false), info_of(evaluation_report_schema(), false)};
  return infos;
}

const RecordInfo& record_info(std::string_view name) {
  return find_row("kind of line", name, record_infos());
}

std::string json_path(const ColumnInfo& column) {
  const std::string path =
      column.object.empty() ? column.json_key() : column.object + "." + column.json_key();
  return column.type == ColumnType::numbers ? path + ".*" : path;
}

std::string value_name(const ColumnInfo& column) {
  if (column.unit == kShareUnit) return "share, 0 to 1";
  if (!column.unit.empty()) return column.unit;
  switch (column.type) {
    case ColumnType::whole:
      return "whole number";
    case ColumnType::real:
    case ColumnType::numbers:
      return "number";
    case ColumnType::flag:
      return "true or false";
    case ColumnType::wholes:
      return "whole numbers";
    case ColumnType::text:
    case ColumnType::texts:
      break;
  }
  return column.type == ColumnType::text ? "text" : "texts by name";
}

std::string record_json_schema() {
  Json json{{"$schema", kJsonSchemaDraft},
            {"title", "Records of rubato"},
            {"description",
             "A line of metrics.jsonl, summary.json, or what `rubato eval --json` prints."},
            {"oneOf", Json::array()},
            {"$defs", Json::object()}};
  for (const RecordInfo& record : record_infos()) {
    json["oneOf"].push_back({{"$ref", "#/$defs/" + record.name}});
    json["$defs"][record.name] = record_schema(record);
  }
  return json_text(json, 2) + '\n';
}

nlohmann::ordered_json json_of(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        using Value = std::remove_cvref_t<decltype(value)>;
        Json json;
        if constexpr (std::is_same_v<Value, std::vector<NamedNumber>>) {
          for (const NamedNumber& number : value) json[number.name] = number.value;
        } else if constexpr (std::is_same_v<Value, NamedTexts>) {
          json = Json::object();
          for (const auto& [name, text] : value) {
            json[name] = text.empty() ? Json() : Json(text);
          }
        } else if constexpr (!std::is_same_v<Value, std::monostate>) {
          json = value;
        }
        return json;
      },
      cell);
}

void put_cell(Json& json, const ColumnInfo& column, const Cell& cell) {
  if (column.usual && cell == Cell(*column.usual)) return;
  Json value = json_of(cell);
  const bool is_none = value.is_null();
  if (is_none && !column.null_if_none) return;
  if (column.object.empty()) {
    json[column.json_key()] = std::move(value);
  } else if (Json& object = json[column.object]; !is_none || object.is_object()) {
    object[column.json_key()] = std::move(value);
  }
}

const JsonForm<ClockTime>& clock_form() {
  static const JsonForm<ClockTime> form{
      record_schema(info_of(clock_schema(), false))["properties"][clock_schema().name],
      [](const ClockTime& time) { return json_of(clock_schema(), time)[clock_schema().name]; }};
  return form;
}

const nlohmann::json* value_in(const nlohmann::json& record, const ColumnInfo& column) {
  const auto member = [](const nlohmann::json* object, const std::string& key) {
    const auto found = object->find(key);
    return found == object->end() ? nullptr : &*found;
  };
  const nlohmann::json* const object =
      column.object.empty() ? &record : member(&record, column.object);
  return object == nullptr ? nullptr : member(object, column.json_key());
}

}  // namespace rubato
