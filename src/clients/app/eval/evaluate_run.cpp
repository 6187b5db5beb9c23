#include "evaluate_run.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/system/file.hpp"
#include "base/core/tables/csv_field.hpp"
#include "base/core/tables/text_table.hpp"
#include "base/core/text/or_null.hpp"
#include "clients/app/line/output.hpp"
#include "runs/report/progress.hpp"
#include "runs/report/record_json.hpp"
#include "runs/report/report_schemas.hpp"

namespace rubato::app {

namespace {

EvaluationReport report_of(const RunConfiguration& run, const Evaluation& evaluation) {
  EvaluationReport report{.evaluation = evaluation};
  if (evaluation.top_k_accuracy) report.top_k = test_metrics_of(run).top_k;
  return report;
}

std::string text_of(const EvaluationReport& report) {
  TextTable table({Column::left, Column::right});
  for (const auto& [label, value, progress] :
       shown_fields(evaluation_report_schema(), report, report.top_k.value_or(0), Digits::many)) {
    table.add({label, value});
  }
  return table.text();
}

template <class T>
void add_rows(std::string& csv, const NamedArray& array, std::size_t columns) {
  const auto values = array.values<T>();
  for (std::size_t row = 0; row * columns < values.size(); ++row) {
    fmt::format_to(std::back_inserter(csv), "{},{}\n", row,
                   fmt::join(values.subspan(row * columns, columns), ","));
  }
}

// Writes a header and a row for each sample: its number, then its elements in row-major order.
std::string csv_of(const NamedArray& array) {
  const auto samples = static_cast<std::size_t>(array.shape.front());
  const std::size_t columns = array.size() / samples;
  std::string csv = "sample";
  for (std::size_t i = 0; i < columns; ++i) {
    csv += columns == 1 ? "," + array.name : fmt::format(",{}{}", array.name, i);
  }
  csv += '\n';
  switch (array.type) {
    case ElementType::f32:
      add_rows<float>(csv, array, columns);
      return csv;
    case ElementType::f64:
      add_rows<double>(csv, array, columns);
      return csv;
    case ElementType::i64:
      add_rows<std::int64_t>(csv, array, columns);
      return csv;
    default:
      throw Error(fmt::format("outputs of type {} are not written as CSV; accepted: --out FILE.pt",
                              name_of(array.type)));
  }
}

// Writes the class of each sample by name; an output beyond the names is written as its number.
std::string csv_of_names(const NamedArray& classes, const std::vector<std::string>& names) {
  std::string csv = fmt::format("sample,{}\n", classes.name);
  std::size_t sample = 0;
  for (const std::int64_t of : classes.values<std::int64_t>()) {
    fmt::format_to(std::back_inserter(csv), "{},{}\n", sample++,
                   static_cast<std::size_t>(of) < names.size()
                       ? csv_field(names[static_cast<std::size_t>(of)])
                       : fmt::to_string(of));
  }
  return csv;
}

std::string csv_of(const ArrayCopies& found) {
  if (found.arrays().size() != 1) {
    throw Error(
        fmt::format("the model has {} outputs, which are not written as one CSV; accepted: "
                    "--out FILE.pt",
                    found.arrays().size()));
  }
  return csv_of(found.arrays().front());
}

std::string safetensors_of(const ArrayCopies& found) {
  State state;
  for (const NamedArray& array : found.arrays()) put_array(state, "", array);
  return state_bytes(state);
}

}  // namespace

ExitCode evaluate(const EvaluateArguments& arguments, const LoadWorkload& load) {
  const EvaluationReport report =
      report_of(arguments.run, rubato::evaluate(*load(arguments.run), arguments.run));
  print_out(arguments.json ? json_text(json_of(evaluation_report_schema(), report), 2) + '\n'
                           : text_of(report));
  return ExitCode::good;
}

ExitCode predict(const EvaluateArguments& arguments, const LoadWorkload& load) {
  const std::shared_ptr<const Workload> workload = load(arguments.run);
  const ArrayCopies found = rubato::predict(*workload, arguments.run, arguments.what);
  const std::vector<std::string> names = workload->class_names();
  const auto csv = [&] {
    return arguments.what == Prediction::classes && !names.empty()
               ? csv_of_names(found.arrays().front(), names)
               : csv_of(found);
  };
  if (!arguments.out) {
    print_out(csv());
    return ExitCode::good;
  }
  const std::string type = arguments.out->extension().string();
  if (type == ".pt") {
    write_file(*arguments.out, workload->weights(found.arrays(), {}));
  } else {
    write_file(*arguments.out, type == ".csv" ? csv() : safetensors_of(found));
  }
  return ExitCode::good;
}

}  // namespace rubato::app
