#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <rubato/runs/records.hpp>

#include "base/core/text/output_fields.hpp"
#include "loop/train/record_schemas.hpp"

namespace rubato {

/// The evaluation of a model on a data set, and the K of its top-k accuracy, if it has one.
struct EvaluationReport {
  Evaluation evaluation{};
  std::optional<std::int64_t> top_k{};
};

// The schemas of the records that are reported in addition to those of training
// (loop/train/record_schemas.hpp).

[[nodiscard]] const RecordSchema<OwnMetrics>& own_schema();
[[nodiscard]] const RecordSchema<RunSummary>& summary_schema();
[[nodiscard]] const RecordSchema<EvaluationReport>& evaluation_report_schema();

/// The description of a kind of record.
struct RecordInfo {
  std::string name{};
  std::string help{};
  /// Whether it is a line of metrics.jsonl; the line's `kind` is then this name.
  bool is_metrics_line = false;
  std::vector<ColumnInfo> columns{};
};

/// All records that are written for other programs: the lines of metrics.jsonl, summary.json, and
/// the output of `rubato eval --json`.
[[nodiscard]] const std::vector<RecordInfo>& record_infos();
/// The one of this name, which must exist.
[[nodiscard]] const RecordInfo& record_info(std::string_view name);

/// The path of a column in the JSON of its record: "seconds.wall"; "metrics.*" for several numbers.
[[nodiscard]] std::string json_path(const ColumnInfo& column);
/// The unit or type of a column's values, for people: "hours", "whole number", "true or false".
[[nodiscard]] std::string value_name(const ColumnInfo& column);

/// A JSON Schema (draft 2020-12), as JSON text, that is valid for each of these records. Each
/// column has the annotations `column` (its name without nesting), `unit` and `tensorboard` (its
/// tag).
[[nodiscard]] std::string record_json_schema();

/// The JSON Schema of one record, without the parts that a document needs.
[[nodiscard]] nlohmann::ordered_json record_schema(const RecordInfo& record);

/// The JSON value of a cell; null if the cell is empty.
[[nodiscard]] nlohmann::ordered_json json_of(const Cell& cell);

/// Adds the value of a column to the JSON of its record. A number that is not finite becomes null.
void put_cell(nlohmann::ordered_json& json, const ColumnInfo& column, const Cell& cell);

/// The value of a column in the JSON of a record; for a column of several numbers, the object with
/// them. Null if the record does not have it.
[[nodiscard]] const nlohmann::json* value_in(const nlohmann::json& record,
                                             const ColumnInfo& column);

/// A record as a JSON object; its columns are appended to the members of `json`.
template <class Record>
[[nodiscard]] nlohmann::ordered_json json_of(
    const RecordSchema<Record>& schema, const Record& record,
    nlohmann::ordered_json json = nlohmann::ordered_json::object()) {
  for (const RecordColumn<Record>& column : schema.columns) {
    if (column.info().shown) put_cell(json, column.info(), column.read(record));
  }
  return json;
}

/// The form of the object `clock` of a record.
[[nodiscard]] const JsonForm<ClockTime>& clock_form();

/// How a run ended, from the columns `end` and `stopped` of its summary. The summaries of older
/// programs have no `end`; it then follows from the reason and from whether a step diverged.
[[nodiscard]] RunEnd end_of(std::string_view end, std::string_view stopped, bool has_diverged);

}  // namespace rubato
