#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>

namespace rubato {

/// The kinds of lines that metrics.jsonl may have: "step", "epoch", ...
[[nodiscard]] std::vector<std::string> metrics_kinds();

/// Writes the lines of a kind in a metrics.jsonl as CSV: a header with the names of the columns, as
/// Python has them (docs/records.md), and a row for each line. All columns but lists are there,
/// with empty fields for what a line does not have; of a column of several numbers, those are that
/// the file has. The file may be that of a run that goes on: a last line that is not whole yet is
/// left out. Throws Error with file and line for what is no line of the metrics, and for an unknown
/// kind.
void write_metrics_csv(const std::filesystem::path& file, std::string_view kind,
                       const ByteSink& sink);

}  // namespace rubato
