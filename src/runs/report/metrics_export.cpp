#include "metrics_export.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/file.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/text/json.hpp"
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

namespace {

using Json = nlohmann::ordered_json;

constexpr double kSecondsBetween = 1;

// Escapes text for use between quotes. Invalid UTF-8 is replaced, because parsers would reject the
// whole file.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : Json::parse(json_text(Json(text))).get<std::string>()) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

// Replaces quotes in the text of # HELP: OpenMetrics requires them to be escaped, but the node
// exporter does not accept that.
std::string without_quotes(std::string_view text) {
  std::string out(text);
  std::ranges::replace(out, '"', '\'');
  return out;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Inf" : "+Inf";
  return fmt::to_string(value);
}

// The text of the file, metric by metric.
class Exposition {
 public:
  explicit Exposition(std::string_view run) : run_(escaped(run)) {}

  void begin(std::string_view name, std::string_view unit, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# TYPE {} gauge\n", name_);
    if (!unit.empty()) text_ += fmt::format("# UNIT {} {}\n", name_, unit);
    text_ += fmt::format("# HELP {} {}\n", name_, without_quotes(help));
  }
  void add(double value, std::string_view of = {}) {
    const std::string label = of.empty() ? "" : fmt::format(",name=\"{}\"", escaped(of));
    text_ += fmt::format("{}{{run=\"{}\"{}}} {}\n", name_, run_, label, number_text(value));
  }
  [[nodiscard]] std::string end() && { return std::move(text_) + "# EOF\n"; }

 private:
  std::string run_;
  std::string name_;
  std::string text_;
};

std::string unit_of(const ColumnInfo& column) {
  if (column.unit == kShareUnit) return "ratio";
  std::string unit = column.unit;
  for (char& c : unit) {
    if (c == '-') c = '_';
  }
  return unit;
}

// Example: "rubato_step_wall_seconds". The names of several numbers become a label and are not part
// of the metric's name; the index of a record is named like the record.
std::string metric_name(std::string_view record, const ColumnInfo& column) {
  std::string of = column.name;
  if (of.ends_with('*')) of = column.json_key();
  std::string name =
      of == record ? fmt::format("rubato_{}", of) : fmt::format("rubato_{}_{}", record, of);
  const std::string unit = unit_of(column);
  if (!unit.empty() && !name.ends_with('_' + unit)) name += '_' + unit;
  return name;
}

template <class Record>
void add_record(Exposition& text, const RecordSchema<Record>& schema, const Record& record) {
  for (const RecordColumn<Record>& column : schema.columns) {
    const ColumnInfo& info = column.info();
    if (!info.shown) continue;
    const auto begin = [&] {
      text.begin(metric_name(schema.name, info), unit_of(info), info.help);
    };
    std::visit(
        [&](const auto& value) {
          using Value = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_arithmetic_v<Value>) {
            begin();
            text.add(static_cast<double>(value));
          } else if constexpr (std::is_same_v<Value, std::vector<NamedNumber>>) {
            if (value.empty()) return;
            begin();
            for (const NamedNumber& one : value) text.add(one.value, one.name);
          }
        },
        column.read(record));
  }
}

}  // namespace

OpenMetrics::OpenMetrics(std::filesystem::path file, std::string run)
    : file_(std::move(file)), run_(std::move(run)) {}

OpenMetrics::~OpenMetrics() {
  try {
    write(/*running=*/false);
  } catch (...) {
    // The final values have been written after the last epoch, so an error here is ignored.
    return;
  }
}

void OpenMetrics::on_added(Training& training) {
  result_ = training.result();
  write(/*running=*/true);
}

void OpenMetrics::on_step(Training& training, const StepRecord& step) {
  step_ = step;
  if (since_.seconds() < kSecondsBetween) return;
  result_ = training.result();
  write(/*running=*/true);
}

void OpenMetrics::on_epoch(Training& training, const EpochRecord& epoch) {
  epoch_ = epoch;
  result_ = training.result();
  write(/*running=*/true);
}

void OpenMetrics::write(bool running) {
  Exposition text(run_);
  text.begin("rubato_running", "", "whether the training is running: 1, or 0 once it has ended");
  text.add(running ? 1 : 0);
  if (step_) add_record(text, step_schema(), *step_);
  if (epoch_) add_record(text, epoch_schema(), *epoch_);
  add_record(text, result_schema(), result_);
  replace_file(file_, std::move(text).end());
  since_ = {};
}

}  // namespace rubato
