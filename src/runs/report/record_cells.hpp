#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"
#include "report_schemas.hpp"

namespace rubato {

/// The values of a record in the order of its RecordInfo::columns.
using Cells = std::vector<Cell>;

/// Reads JSON text. A value that is missing is std::monostate, or the usual one of a flag; null is
/// NaN for a number, and a missing value otherwise. Other members of the text are skipped, because
/// newer programs may have more columns. Throws Error if it is not a JSON object, or if a value has
/// another type than its column ('seconds.wall is "x"').
[[nodiscard]] Cells cells_of(std::span<const ColumnInfo> columns, std::string_view json);

/// The index of a column among RecordInfo::columns, where it must be.
[[nodiscard]] std::size_t column_index(const RecordInfo& record, std::string_view column);
/// The number of a column, as it is written; empty if the record has none there. Readers of many
/// records look the index up once.
[[nodiscard]] std::optional<double> number_in(const Cells& cells, std::size_t index);
[[nodiscard]] inline std::optional<double> number_in(const RecordInfo& record, const Cells& cells,
                                                     std::string_view column) {
  return number_in(cells, column_index(record, column));
}
/// The values of a summary.json. Throws Error, naming the file, if it is not one.
[[nodiscard]] Cells summary_cells(const std::filesystem::path& file);

/// The record with these values: the opposite of json_of(). Members without a value are those of a
/// new record, and computed columns are left out. Throws Error if a number is out of range.
template <class Record>
[[nodiscard]] Record record_of(const RecordSchema<Record>& schema, const Cells& cells) {
  Record record{};
  std::size_t i = 0;
  for (const RecordColumn<Record>& column : schema.columns) {
    if (!column.info().shown) continue;
    const Cell& cell = cells.at(i++);
    if (!column.is_writable() || std::holds_alternative<std::monostate>(cell)) continue;
    if (column.write(record, cell)) continue;
    throw_error("{} is out of range", json_path(column.info()));
  }
  return record;
}

}  // namespace rubato
