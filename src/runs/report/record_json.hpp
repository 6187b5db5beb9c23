#pragma once

#include <utility>

#include <nlohmann/json.hpp>

#include "loop/train/records/record_column.hpp"

namespace rubato {

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

}  // namespace rubato
