#include "metrics_export.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/text/csv.hpp"
#include "base/core/vectors.hpp"
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
  // Its text; nullptr if it has none.
  [[nodiscard]] const std::string* text(const Cells& cells) const {
    return std::get_if<std::string>(&cells.at(index));
  }
  // The value as JSON; null if it has none, or is a text.
  [[nodiscard]] nlohmann::json value(const Cells& cells) const {
    const Cell& cell = cells.at(index);
    if (const auto* const real = std::get_if<double>(&cell)) return *real;
    if (const auto* const whole = std::get_if<std::int64_t>(&cell)) return *whole;
    if (const auto* const large = std::get_if<std::uint64_t>(&cell)) return *large;
    if (const auto* const flag = std::get_if<bool>(&cell)) return *flag;
    const auto* const numbers = std::get_if<std::vector<NamedNumber>>(&cell);
    if (!number || numbers == nullptr) return {};
    const auto found = std::ranges::find(*numbers, *number, &NamedNumber::name);
    return found == numbers->end() ? nlohmann::json() : nlohmann::json(found->value);
  }
};

// The line of a row. JSON writes all its numbers at once, because beginning to write takes longer
// than a number. One that is not finite is null, as one that is missing.
std::string row_of(const std::vector<CsvColumn>& columns, const Cells& cells) {
  nlohmann::json::array_t values;
  values.reserve(columns.size());
  for (const CsvColumn& column : columns) values.push_back(column.value(cells));
  std::string json = nlohmann::json(std::move(values)).dump();
  json.back() = ',';
  std::string row;
  row.reserve(json.size());
  std::size_t begin = 1;
  for (const CsvColumn& column : columns) {
    const std::size_t end = json.find(',', begin);
    const auto value = std::string_view(json).substr(begin, end - begin);
    begin = end + 1;
    const std::string* const text = column.text(cells);
    if (text != nullptr) row += csv_field(*text);
    if (value != "null") row += value;
    row += ',';
  }
  row.back() = '\n';
  return row;
}

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
  return vector_of(metrics_infos(), &RecordInfo::name);
}

void write_metrics_csv(const std::filesystem::path& file, std::string_view kind,
                       const ByteSink& sink) {
  const std::vector<RecordInfo> infos = metrics_infos();
  const RecordInfo& record = find_row("kind of line", kind, infos);
  require_metrics(file);
  const std::vector<CsvColumn> columns = columns_of(file, record);
  const auto names =
      vector_of(columns, [](const CsvColumn& column) { return csv_field(column.name()); });
  sink(fmt::format("{}\n", fmt::join(names, ",")));
  for_each_line(file, record, [&](const Cells& cells) { sink(row_of(columns, cells)); });
}

}  // namespace rubato
