#include "record_cells.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/file.hpp"
#include "base/core/text/json.hpp"
#include "base/core/throw_error.hpp"
#include "record_scan.hpp"

namespace rubato {

namespace {

using Value = nlohmann::json;

[[noreturn]] void reject(const ColumnInfo& column, const Value& value) {
  throw_error("{} is {}", json_path(column), json_text(value));
}

double real_in(const ColumnInfo& column, const Value& value) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) reject(column, value);
  return value.get<double>();
}

Cell whole_in(const ColumnInfo& column, const Value& value) {
  // A larger number is not a count, and could overflow a sum.
  constexpr std::uint64_t kMostCount = 1'000'000'000'000'000;
  if (!value.is_number_unsigned()) reject(column, value);
  const auto whole = value.get<std::uint64_t>();
  if (whole > kMostCount) return whole;
  return static_cast<std::int64_t>(whole);
}

std::string text_in(const ColumnInfo& column, const Value& value) {
  if (!value.is_string()) reject(column, value);
  return value.get<std::string>();
}

// The cell of a value that is not null, or of a number.
Cell cell_in(const ColumnInfo& column, const Value& value) {
  const bool is_list = column.type == ColumnType::numbers || column.type == ColumnType::texts;
  if (is_list && !value.is_object()) reject(column, value);
  switch (column.type) {
    case ColumnType::whole:
      return whole_in(column, value);
    case ColumnType::real:
      return real_in(column, value);
    case ColumnType::flag:
      if (!value.is_boolean()) reject(column, value);
      return value.get<bool>();
    case ColumnType::text:
      return text_in(column, value);
    case ColumnType::wholes: {
      std::vector<std::int64_t> wholes;
      if (!value.is_array()) reject(column, value);
      for (const Value& item : value) {
        const Cell whole = whole_in(column, item);
        if (!std::holds_alternative<std::int64_t>(whole)) reject(column, value);
        wholes.push_back(std::get<std::int64_t>(whole));
      }
      return wholes;
    }
    case ColumnType::numbers: {
      std::vector<NamedNumber> numbers;
      for (const auto& [name, item] : value.items()) {
        numbers.push_back({name, real_in(column, item)});
      }
      return numbers;
    }
    case ColumnType::texts:
      break;
  }
  NamedTexts texts;
  for (const auto& [name, item] : value.items()) {
    texts.emplace_back(name, item.is_null() ? std::string() : text_in(column, item));
  }
  return texts;
}

}  // namespace

Cells cells_of(std::span<const ColumnInfo> columns, std::string_view json) {
  if (std::optional<Cells> cells = scanned_cells(columns, json)) return *std::move(cells);
  const Value record = Value::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) throw Error("is not a JSON object");
  Cells cells(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnInfo& column = columns[i];
    if (column.usual) cells[i] = *column.usual;
    const Value* const value = value_in(record, column);
    const bool is_number = column.type == ColumnType::real && !column.null_if_none;
    if (value == nullptr || (value->is_null() && !is_number)) continue;
    cells[i] = cell_in(column, *value);
  }
  return cells;
}

std::size_t column_index(const RecordInfo& record, std::string_view column) {
  const auto at = std::ranges::find(record.columns, column, &ColumnInfo::name);
  return static_cast<std::size_t>(at - record.columns.begin());
}

std::optional<double> number_in(const Cells& cells, std::size_t index) {
  const Cell& cell = cells.at(index);
  if (const auto* const whole = std::get_if<std::int64_t>(&cell))
    return static_cast<double>(*whole);
  const auto* const real = std::get_if<double>(&cell);
  return real == nullptr ? std::nullopt : std::optional(*real);
}

Cells summary_cells(const std::filesystem::path& file) {
  try {
    return cells_of(record_info(summary_schema().name).columns, read_file(file));
  } catch (const Error& error) {
    throw_error("{}: not a summary of a run ({})", file.string(), error.what());
  }
}

}  // namespace rubato
