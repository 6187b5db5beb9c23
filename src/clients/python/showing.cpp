// What notebooks show is made by the code of pages (runs/page/part.hpp). A result has its records
// as columns of numbers, from which the page's own reader makes a thinned run; a Run has those of
// its folder. Both have own metrics as columns of the step or the epoch that they belong to.

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <rubato/runs/run_folder.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/file.hpp"
#include "conversions.hpp"
#include "loop/train/record_schemas.hpp"
#include "module.hpp"
#include "runs/config/run_option.hpp"
#include "runs/page/part.hpp"
#include "runs/page/thinned_run.hpp"
#include "runs/report/metrics_file.hpp"
#include "runs/report/report_schemas.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;
using namespace py::literals;

page::NumberColumns numbers_in(const py::dict& columns) {
  page::NumberColumns numbers;
  for (const auto& [name, column] : columns) {
    constexpr std::string_view kNumbers = "biuf";
    const auto array = py::array::ensure(column);
    // Texts, such as digests, are in no chart.
    if (!array || array.ndim() != 1 ||
        kNumbers.find(array.dtype().kind()) == std::string_view::npos) {
      continue;
    }
    const auto values = py::array_t<double, py::array::c_style | py::array::forcecast>(array);
    std::vector<double>& to = numbers[py::str(name)];
    to.assign(values.data(), values.data() + values.size());
  }
  return numbers;
}

std::string html_of_result(const std::shared_ptr<TrainedOn>& on, const py::dict& steps,
                           const py::dict& epochs, const py::dict& faults,
                           const std::string& summary) {
  const page::RecordColumns records{
      .steps = numbers_in(steps), .epochs = numbers_in(epochs), .faults = numbers_in(faults)};
  const py::gil_scoped_release free;
  page::ThinnedRun run("", page::kColumnsOfPart);
  if (!summary.empty()) run.summary = nlohmann::json::parse(summary);
  for (const RunOption& option : run_options()) {
    if (const auto text = option.text(on->run)) run.options.emplace(option.name, *text);
  }
  page::take_records(records, run);
  return page::part_of(run);
}

// A table whose newest row is open for metrics of the user's own, which follow it in the file.
struct OpenTable {
  Table table{};
  Row last{};

  void begin(Row row) {
    close();
    last = std::move(row);
  }
  void close() {
    if (!last.empty()) table.add(std::exchange(last, {}));
  }
};

Row row_in(const RecordInfo& record, const Cells& cells) {
  Row row;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& name = record.columns[i].name;
    if (const auto* const numbers = std::get_if<std::vector<NamedNumber>>(&cells[i])) {
      for (const NamedNumber& of : *numbers) row.push_back({with_name(name, of.name), of.value});
    } else {
      row.push_back({name, cells[i]});
    }
  }
  return row;
}

std::map<std::string, OpenTable> recorded_tables(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / RunFolder::kMetrics;
  require_metrics(file);
  std::map<std::string, OpenTable> tables;
  GrowingLines lines(file);
  read_metrics(lines, [&](const MetricsLine& line) {
    const Cells cells = line.cells();
    const RecordInfo& record = record_info(line.kind());
    if (line.kind() != own_schema().name) {
      tables[line.kind()].begin(row_in(record, cells));
      return;
    }
    Row& to = tables[number_in(record, cells, "epoch") ? "epoch" : "step"].last;
    if (const auto* const own = std::get_if<std::vector<NamedNumber>>(&cells.back())) {
      for (const NamedNumber& number : *own) to.push_back({number.name, number.value});
    }
  });
  for (auto& [kind, table] : tables) table.close();
  return tables;
}

// The keys of train()'s dictionary, with the kinds of records.
constexpr std::array<std::pair<const char*, const char*>, 5> kTables{{{"steps", "step"},
                                                                      {"epochs", "epoch"},
                                                                      {"minibatches", "minibatch"},
                                                                      {"faults", "fault"},
                                                                      {"monitored", "monitor"}}};

py::dict recorded_run(const std::filesystem::path& folder) {
  std::map<std::string, OpenTable> tables;
  std::string summary;
  {
    const py::gil_scoped_release free;
    tables = recorded_tables(folder);
    const std::filesystem::path file = folder / RunFolder::kSummary;
    if (is_there(file)) summary = read_file(file);
  }
  py::dict run("summary"_a = summary);
  for (const auto& [key, kind] : kTables) run[key] = tables[kind].table.columns();
  return run;
}

}  // namespace

void define_showing(py::module_& module) {
  module.def("html_of_result", &html_of_result);
  module.def("html_of_folder", &page::part_of_folder, py::call_guard<py::gil_scoped_release>());
  module.def("html_of_steps", [](const Trace& trace) { return page::part_of(trace); });
  module.def("html_of_steps", [](const Availability& of) { return page::part_of(of); });
  module.def("recorded_run", &recorded_run);
}

}  // namespace rubato::python
