#pragma once

#include <utility>

#include <nlohmann/json.hpp>

#include "loop/train/records/record_column.hpp"

namespace rubato {

/// Puts the value of a column into the JSON of its record. A number that is not finite is null.
void put_cell(nlohmann::ordered_json& json, const ColumnInfo& column, const Cell& cell);

/// What the JSON of a record has for a column: its value, or the object with its numbers. Null
/// where it has nothing there.
[[nodiscard]] const nlohmann::json* value_in(const nlohmann::json& record,
                                             const ColumnInfo& column);

/// A record as an object of JSON, its columns behind what is in `json` already.
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
