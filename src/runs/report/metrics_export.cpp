#include "metrics_export.hpp"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/text/csv.hpp"
#include "loop/train/record_schemas.hpp"
#include "report_schemas.hpp"

namespace rubato {

namespace {

// Reads the complete lines of a file one by one.
class MetricsLines {
 public:
  explicit MetricsLines(const std::filesystem::path& file) : file_(file), in_(file) {
    if (in_) return;
    throw Error(fmt::format("{}: cannot be read: {}; accepted: the folder of a run", file.string(),
                            std::generic_category().message(errno)));
  }

  // The next line of this kind; empty at the end of the file.
  [[nodiscard]] std::optional<nlohmann::json> next(std::string_view kind) {
    for (std::string text; std::getline(in_, text);) {
      // The end of this line has not been written yet.
      if (in_.eof()) break;
      ++number_;
      nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
      const bool has_kind = line.is_object() && line.contains("kind") && line["kind"].is_string();
      if (!has_kind) reject("is not a line of metrics");
      if (line["kind"] == kind) return line;
    }
    return std::nullopt;
  }

  [[noreturn]] void reject(std::string_view why) const {
    throw Error(fmt::format("{}:{}: {}; accepted: what a run has written (docs/records.md)",
                            file_.string(), number_, why));
  }

 private:
  std::filesystem::path file_;
  std::ifstream in_;
  std::int64_t number_ = 0;
};

bool has_type(const nlohmann::json& value, ColumnType type) {
  switch (type) {
    case ColumnType::flag:
      return value.is_boolean();
    case ColumnType::text:
      return value.is_string();
    case ColumnType::whole:
      return value.is_number_integer();
    default:
      return value.is_number();
  }
}

// A column of the CSV: a column of the schema, or one number of a column of several.
struct CsvColumn {
  ColumnInfo info{};
  // Name of the number, in a column of several.
  std::optional<std::string> number{};

  [[nodiscard]] std::string name() const {
    return number ? with_name(info.name, *number) : info.name;
  }

  [[nodiscard]] std::string field(const nlohmann::json& line, const MetricsLines& lines) const {
    const nlohmann::json* value = value_in(line, info);
    if (value != nullptr && number) {
      const auto found = value->find(*number);
      value = found == value->end() ? nullptr : &*found;
    }
    if (value == nullptr) return info.usual ? (*info.usual ? "true" : "false") : "";
    // Null stands for a number that is not finite.
    if (value->is_null()) return "";
    if (!has_type(*value, info.type)) {
      lines.reject(fmt::format("{} is {}", json_path(info), value->dump()));
    }
    return value->is_string() ? csv_field(value->get<std::string>()) : value->dump();
  }
};

std::vector<RecordInfo> metrics_infos() {
  std::vector<RecordInfo> infos = record_infos();
  std::erase_if(infos, [](const RecordInfo& record) { return !record.is_metrics_line; });
  return infos;
}

std::vector<CsvColumn> columns_of(const std::filesystem::path& file, const RecordInfo& record) {
  std::vector<CsvColumn> columns;
  for (const ColumnInfo& column : record.columns) {
    if (column.type == ColumnType::wholes) continue;
    if (column.type != ColumnType::numbers) {
      columns.push_back({.info = column});
      continue;
    }
    std::set<std::string> numbers;
    MetricsLines lines(file);
    while (const auto line = lines.next(record.name)) {
      const nlohmann::json* const values = value_in(*line, column);
      if (values == nullptr || values->is_null()) continue;
      if (!values->is_object()) lines.reject(fmt::format("{} is {}", column.key, values->dump()));
      for (const auto& [name, value] : values->items()) numbers.insert(name);
    }
    for (const std::string& number : numbers) columns.push_back({.info = column, .number = number});
  }
  return columns;
}

}  // namespace

std::vector<std::string> metrics_kinds() {
  std::vector<std::string> kinds;
  for (RecordInfo& record : metrics_infos()) kinds.push_back(std::move(record.name));
  return kinds;
}

void write_metrics_csv(const std::filesystem::path& file, std::string_view kind,
                       const ByteSink& sink) {
  const std::vector<RecordInfo> infos = metrics_infos();
  const RecordInfo& record = find_row("kind of line", kind, infos);
  const std::vector<CsvColumn> columns = columns_of(file, record);
  const auto write_row = [&](const auto& field) {
    std::vector<std::string> row;
    row.reserve(columns.size());
    for (const CsvColumn& column : columns) row.push_back(field(column));
    sink(fmt::format("{}\n", fmt::join(row, ",")));
  };
  MetricsLines lines(file);
  write_row([](const CsvColumn& column) { return csv_field(column.name()); });
  while (const auto line = lines.next(record.name)) {
    write_row([&](const CsvColumn& column) { return column.field(*line, lines); });
  }
}

}  // namespace rubato
