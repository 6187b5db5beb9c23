#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>

namespace rubato {

/// The kinds of lines that metrics.jsonl may have: "step", "epoch", ...
[[nodiscard]] std::vector<std::string> metrics_kinds();

/// Writes the lines of one kind in a metrics.jsonl as CSV: a header with the names of the columns,
/// as in Python (docs/records.md), and a row for each line. All columns except lists are written;
/// fields that a line does not have are empty. A column of several numbers becomes one column for
/// each number that the file has. The file may belong to a run that is still training: a last line
/// that is incomplete is left out. Throws Error with file and line for anything that is not a line
/// of metrics, and for an unknown kind.
void write_metrics_csv(const std::filesystem::path& file, std::string_view kind,
                       const ByteSink& sink);

}  // namespace rubato
