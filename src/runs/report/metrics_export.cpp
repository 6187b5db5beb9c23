#include "metrics_export.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/text/csv.hpp"
#include "loop/train/record_schemas.hpp"
#include "metrics_file.hpp"
#include "report_schemas.hpp"

namespace rubato {

namespace {

// A column of the CSV: a column of the schema, or one number of a column of several.
struct CsvColumn {
  // Index in the schema.
  std::size_t index = 0;
  ColumnInfo info{};
  // Name of the number, in a column of several.
  std::optional<std::string> number{};

  [[nodiscard]] std::string name() const {
    return number ? with_name(info.name, *number) : info.name;
  }
  [[nodiscard]] std::string field(const Cells& cells) const {
    const Cell& cell = cells.at(index);
    if (number) {
      const auto* const numbers = std::get_if<std::vector<NamedNumber>>(&cell);
      if (numbers == nullptr) return {};
      const auto found = std::ranges::find(*numbers, *number, &NamedNumber::name);
      return found == numbers->end() ? std::string() : csv_field_of(found->value);
    }
    return csv_field_of(cell);
  }

 private:
  // Empty for a number that is not finite, which JSON writes as null.
  static std::string csv_field_of(const Cell& cell) {
    const nlohmann::ordered_json value = json_of(cell);
    if (value.is_null() || (value.is_number_float() && !std::isfinite(value.get<double>())))
      return {};
    return value.is_string() ? csv_field(value.get<std::string>()) : value.dump();
  }
};

std::vector<RecordInfo> metrics_infos() {
  std::vector<RecordInfo> infos = record_infos();
  std::erase_if(infos, [](const RecordInfo& record) { return !record.is_metrics_line; });
  return infos;
}

void for_each_line(const std::filesystem::path& file, const RecordInfo& record,
                   const std::function<void(const Cells& cells)>& take) {
  GrowingLines lines(file);
  read_metrics(lines, [&](const MetricsLine& line) {
    if (line.kind() == record.name) take(line.cells());
  });
}

std::vector<CsvColumn> columns_of(const std::filesystem::path& file, const RecordInfo& record) {
  std::vector<CsvColumn> columns;
  for (std::size_t i = 0; i < record.columns.size(); ++i) {
    const ColumnInfo& column = record.columns[i];
    if (column.type == ColumnType::wholes) continue;
    if (column.type != ColumnType::numbers) {
      columns.push_back({.index = i, .info = column});
      continue;
    }
    std::set<std::string> names;
    for_each_line(file, record, [&](const Cells& cells) {
      const auto* const numbers = std::get_if<std::vector<NamedNumber>>(&cells[i]);
      if (numbers == nullptr) return;
      for (const NamedNumber& number : *numbers) names.insert(number.name);
    });
    for (const std::string& name : names) {
      columns.push_back({.index = i, .info = column, .number = name});
    }
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
  require_metrics(file);
  const std::vector<CsvColumn> columns = columns_of(file, record);
  const auto write_row = [&](const auto& field) {
    std::vector<std::string> row;
    row.reserve(columns.size());
    for (const CsvColumn& column : columns) row.push_back(field(column));
    sink(fmt::format("{}\n", fmt::join(row, ",")));
  };
  write_row([](const CsvColumn& column) { return csv_field(column.name()); });
  for_each_line(file, record, [&](const Cells& cells) {
    write_row([&](const CsvColumn& column) { return column.field(cells); });
  });
}

}  // namespace rubato
