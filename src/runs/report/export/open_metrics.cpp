#include "open_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/core/system/file.hpp"
#include "base/core/text/or_null.hpp"
#include "loop/train/records/record_schemas.hpp"

namespace rubato {

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
