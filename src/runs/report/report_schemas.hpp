#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rubato/runs/records.hpp>

#include "loop/train/records/record_schemas.hpp"

namespace rubato {

/// What a model does on a data set, and the K of its top-k accuracy, where there is one.
struct EvaluationReport {
  Evaluation evaluation{};
  std::optional<std::int64_t> top_k{};
};

// The schemas of what is reported beside the records of training
// (loop/train/records/record_schemas.hpp).

[[nodiscard]] const RecordSchema<OwnMetrics>& own_schema();
[[nodiscard]] const RecordSchema<RunSummary>& summary_schema();
[[nodiscard]] const RecordSchema<EvaluationReport>& evaluation_report_schema();

/// What a file of records may have.
struct RecordInfo {
  std::string name{};
  std::string help{};
  /// Whether it is a line of metrics.jsonl, whose `kind` is the name.
  bool is_metrics_line = false;
  std::vector<ColumnInfo> columns{};
};

/// All that is written for other programs: the lines of metrics.jsonl, summary.json, and what
/// `rubato eval --json` prints.
[[nodiscard]] std::vector<RecordInfo> record_infos();

/// Where a column is in the JSON of its record: "seconds.wall"; "metrics.*" of several numbers.
[[nodiscard]] std::string json_path(const ColumnInfo& column);
/// What its values are, for people: "hours", "whole number", "true or false".
[[nodiscard]] std::string value_name(const ColumnInfo& column);

/// Their JSON Schema (draft 2020-12), as JSON text: what each of them is valid for. With each
/// column, as annotations, `column` (its name without nesting), `unit` and `tensorboard` (its tag).
[[nodiscard]] std::string record_json_schema();

}  // namespace rubato
