// The code of pages (runs/page/part.hpp) makes what notebooks show. A result has its records as
// columns of numbers, from which the page's own reader makes a thinned run; a Run has those of its
// folder. Both have own metrics as columns of the step or the epoch that they belong to.

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
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
  using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;
  page::NumberColumns numbers;
  for (const auto& [name, column] : columns) {
    // Texts, such as digests, are in no chart.
    const auto values = Numbers::ensure(column);
    if (!values || values.ndim() != 1) continue;
    numbers[py::str(name)].assign(values.data(), values.data() + values.size());
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

Row row_in(const RecordInfo& record, const Cells& cells) {
  Row row;
  for (std::size_t i = 0; i < cells.size(); ++i) put_cell(record.columns[i].name, cells[i], row);
  return row;
}

// The tables of metrics.jsonl by the kinds of its lines. Own metrics follow the line that they
// belong to.
std::map<std::string, Table> recorded_tables(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / RunFolder::kMetrics;
  require_metrics(file);
  std::map<std::string, Table> tables;
  GrowingLines lines(file);
  read_metrics(lines, [&](const MetricsLine& line) {
    const Cells cells = line.cells();
    const RecordInfo& record = record_info(line.kind());
    if (line.kind() != own_schema().name) {
      tables[line.kind()].add(row_in(record, cells));
    } else if (const auto* const own = std::get_if<std::vector<NamedNumber>>(&cells.back())) {
      Row row;
      for (const NamedNumber& number : *own) row.push_back({number.name, number.value});
      const auto to = tables.find(number_in(record, cells, "epoch") ? "epoch" : "step");
      if (to != tables.end()) to->second.extend(row);
    }
  });
  return tables;
}

// The keys of train()'s dictionary, with the kinds of records.
constexpr std::array<std::pair<const char*, const char*>, 5> kTables{{{"steps", "step"},
                                                                      {"epochs", "epoch"},
                                                                      {"minibatches", "minibatch"},
                                                                      {"faults", "fault"},
                                                                      {"monitored", "monitor"}}};

py::dict recorded_run(const std::filesystem::path& folder) {
  std::map<std::string, Table> tables;
  std::string summary;
  {
    const py::gil_scoped_release free;
    tables = recorded_tables(folder);
    const std::filesystem::path file = folder / RunFolder::kSummary;
    if (is_there(file)) summary = read_file(file);
  }
  py::dict run("summary"_a = summary);
  for (const auto& [key, kind] : kTables) run[key] = tables[kind].columns();
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
