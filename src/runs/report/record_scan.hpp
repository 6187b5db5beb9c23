#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "record_cells.hpp"

namespace rubato {

/// The cells of a record that is written as rubato writes lines of metrics: without blanks, escapes
/// or letters beyond ASCII, and with its columns in their order. Reads it in one pass, several
/// times as fast as a JSON document is built. Empty for any other text, valid or not: cells_of()
/// then reads it in full.
[[nodiscard]] std::optional<Cells> scanned_cells(std::span<const ColumnInfo> columns,
                                                 std::string_view json);

}  // namespace rubato
