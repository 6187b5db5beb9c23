#include "summary_rows.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/text/or_null.hpp"
#include "runs/report/record_json.hpp"
#include "runs/report/report_schemas.hpp"

namespace rubato::page {

namespace {

// A damaged file may have any value here, with any depth of nesting.
std::string text_of(const nlohmann::json& value) {
  if (value.is_null()) return "unknown";
  if (value.is_string()) return value.get<std::string>();
  return value.is_primitive() ? json_text(value) : "...";
}

std::string texts_of(const nlohmann::json& value) {
  if (!value.is_object()) return text_of(value);
  std::vector<std::string> texts;
  for (const auto& [name, text] : value.items()) {
    texts.push_back(fmt::format("{} {}", name, text_of(text)));
  }
  return fmt::to_string(fmt::join(texts, ", "));
}

}  // namespace

Rows summary_rows(const nlohmann::json& summary) {
  Rows rows;
  if (!summary.is_object()) return rows;
  const std::vector<RecordInfo> records = record_infos();
  const auto schema = std::ranges::find(records, "summary", &RecordInfo::name);
  for (const ColumnInfo& column : schema->columns) {
    const nlohmann::json* const json = value_in(summary, column);
    if (json != nullptr && !json->is_null()) rows.emplace_back(json_path(column), texts_of(*json));
  }
  return rows;
}

}  // namespace rubato::page
