// Functions that may take long convert their arguments with the GIL, compute without it, and
// convert the result with it. plan() and simulate() call a SignalCheck after every epoch or step,
// which takes the GIL from time to time so that Ctrl-C ends them. Options arrive as pairs of name
// and text and are set by set_option(), as for a training, so that defaults, ranges and messages
// are those of the command line (docs/adr/0045-python.md). A trace that Python passes is copied
// before the GIL is released.

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <rubato/base/parse.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "calling_thread.hpp"
#include "conversions.hpp"
#include "loop/data/images/digits.hpp"
#include "loop/train/record_schemas.hpp"
#include "module.hpp"
#include "request.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;
using namespace py::literals;

// A number of cores, or one for each of several hosts.
using Cores = std::variant<std::int64_t, std::vector<std::int64_t>>;
using Rows = std::vector<std::pair<std::int64_t, std::optional<Cores>>>;

TraceEnd end_of(const std::string& text) {
  return parse_choice("end", text, kTraceEnds);
}

Trace trace_of(const Rows& steps, const std::string& end, const std::string& source) {
  std::vector<TraceStep> rows;
  rows.reserve(steps.size());
  for (const auto& [batch_size, cores] : steps) {
    TraceStep& row = rows.emplace_back();
    row.batch_size = batch_size;
    if (!cores) continue;
    if (const auto* const hosts = std::get_if<std::vector<std::int64_t>>(&*cores)) {
      row.host_cores = *hosts;
      row.cores = std::accumulate(hosts->begin(), hosts->end(), std::int64_t{0});
    } else {
      row.cores = std::get<std::int64_t>(*cores);
    }
  }
  return {std::move(rows), end_of(end), source};
}

Rows steps_of(const Trace& trace) {
  Rows steps;
  steps.reserve(trace.steps().size());
  for (const TraceStep& step : trace.steps()) {
    std::optional<Cores> cores = step.cores;
    if (!step.host_cores.empty()) cores = step.host_cores;
    steps.emplace_back(step.batch_size, std::move(cores));
  }
  return steps;
}

Availability availability_of(const std::vector<std::pair<double, std::int64_t>>& pairs,
                             double length, const std::string& end, const std::string& source) {
  auto changes = vector_of(pairs, [](const auto& pair) {
    return AvailabilityChange{.seconds = pair.first, .devices = pair.second};
  });
  return {std::move(changes), length, source, end_of(end)};
}

std::string csv_of(const Availability& availability) {
  std::ostringstream csv;
  availability.write_csv(csv);
  return std::move(csv).str();
}

py::dict summary_dict(const Availability& availability) {
  const AvailabilitySummary summary = summary_of(availability);
  return py::dict("fewest"_a = summary.fewest, "most"_a = summary.most, "mean"_a = summary.mean,
                  "changes"_a = summary.changes, "changes_per_hour"_a = summary.changes_per_hour,
                  "share_at_zero"_a = summary.share_at_zero,
                  "longest_at_zero_seconds"_a = summary.longest_at_zero);
}

// The name of a trace's end.
template <class Of>
std::string end_name(const Of& of) {
  return std::string(choice_name(kTraceEnds, of.end()));
}

Availability imported(const std::filesystem::path& path, const std::optional<std::string>& format,
                      const std::string& end) {
  std::optional<AvailabilityFormat> of;
  if (format) of = parse_choice("format", *format, kAvailabilityFormats);
  const TraceFile file = parse_trace_file(path.string());
  return read_availability(file.path, of, end_of(end), file.columns);
}

py::object loaded(const std::string& spec, const std::optional<std::string>& end) {
  const auto of = [&] {
    const py::gil_scoped_release free;
    return load_steps(spec, end ? std::optional(end_of(*end)) : std::nullopt, "");
  }();
  if (const Trace* const trace = std::get_if<Trace>(&of)) return py::cast(*trace);
  return py::cast(std::get<Zones>(of).only());
}

}  // namespace

std::optional<RunSteps> steps_in(const py::object& object) {
  if (object.is_none()) return std::nullopt;
  if (py::isinstance<Trace>(object)) return object.cast<Trace>();
  return object.cast<Availability>();
}

RunSteps with_end(RunSteps steps, std::optional<TraceEnd> end) {
  if (!end || *end == std::visit([](const auto& of) { return of.end(); }, steps)) return steps;
  if (const Trace* const trace = std::get_if<Trace>(&steps)) {
    return Trace(trace->steps(), *end, trace->source(), trace->scaling());
  }
  const Availability& of = std::get<Zones>(steps).only();
  return Availability(of.changes(), of.length(), of.source(), *end, of.sample_gap(), of.prices(),
                      of.origin());
}

void define_traces(py::module_& module) {
  const py::call_guard<py::gil_scoped_release> free;
  py::class_<Trace>(module, "Trace")
      .def(py::init(&trace_of), "steps"_a, "end"_a, "source"_a)
      .def("steps", &steps_of)
      .def("end", &end_name<Trace>)
      .def("source", &Trace::source)
      .def("csv", &Trace::to_csv);
  py::class_<Availability>(module, "Availability")
      .def(py::init(&availability_of), "changes"_a, "length"_a, "end"_a, "source"_a)
      .def("changes",
           [](const Availability& availability) {
             return vector_of(availability.changes(), [](const AvailabilityChange& change) {
               return std::pair(change.seconds, change.devices);
             });
           })
      .def("length", &Availability::length)
      .def("end", &end_name<Availability>)
      .def("source", &Availability::source)
      .def("csv", &csv_of)
      .def("summary", &summary_dict)
      .def("steps",
           [](const Availability& availability, const std::string& policy, std::int64_t minibatch) {
             return to_steps(availability, *AvailabilityChoice(policy).make(minibatch));
           });
  module.def("load_trace", &loaded);
  module.def("import_trace", &imported, free);
  module.def(
      "generate_trace",
      [](const std::string& text, const std::string& end) {
        return generate_availability(text, end_of(end));
      },
      free);
}

namespace {

using namespace py::literals;

// Names of options, with the texts of their values.
using Options = std::vector<std::pair<std::string, std::string>>;

void set_all(RunConfiguration& run, const Options& options) {
  for (const auto& [name, text] : options) set_option(run, name, text);
}

RunSteps asked_steps(const RunConfiguration& run, std::optional<RunSteps> steps) {
  if (!steps) return load_run_steps(run);
  return run_steps_of(run, with_end(*std::move(steps), run.on_trace_end));
}

std::int64_t checked_samples(std::int64_t samples) {
  if (samples >= 1 && samples <= kMaxDatasetSize) return samples;
  throw_error("dataset_size {}: accepted are whole numbers from 1 to {}", samples, kMaxDatasetSize);
}

py::dict dict_of_epoch(const EpochPlan& epoch) {
  Table table;
  for (const StepPlan& step : epoch.steps) {
    table.add({{"step", step.index.value()},
               {"batch", step.batch_size},
               {"cores", step.cores},
               {"first_minibatch", step.first_minibatch.value()},
               {"minibatches", step.minibatches},
               {"shift", step.shift}});
  }
  return py::dict("epoch"_a = epoch.index.value(), "complete"_a = epoch.complete,
                  "steps"_a = table.columns());
}

std::vector<EpochPlan> planned(const Options& options, std::optional<RunSteps> steps,
                               std::optional<std::int64_t> samples,
                               std::optional<std::int64_t> epochs) {
  RunConfiguration run;
  set_all(run, options);
  Planner planner(std::get<Trace>(asked_steps(run, std::move(steps))),
                  plan_options(run, checked_samples(samples.value_or(kBuiltinSamples)), 0));
  SignalCheck look_for_signals;
  return first_epochs(std::move(planner), epochs, [&] { look_for_signals(); });
}

py::list plan(const Options& options, const py::object& trace, std::optional<std::int64_t> samples,
              std::optional<std::int64_t> epochs) {
  if (epochs && (*epochs < 1 || *epochs > kMaxPlannedEpochs)) {
    throw_error("epochs {}: accepted are whole numbers from 1 to {}", *epochs, kMaxPlannedEpochs);
  }
  std::optional<RunSteps> steps = steps_in(trace);
  std::vector<EpochPlan> found;
  {
    const py::gil_scoped_release free;
    found = planned(options, std::move(steps), samples, epochs);
  }
  py::list list;
  for (const EpochPlan& epoch : found) list.append(dict_of_epoch(epoch));
  return list;
}

// Returns the minibatches of each core.
std::vector<std::vector<std::int64_t>> shares(std::int64_t first, std::int64_t minibatches,
                                              std::int64_t cores, const std::string& assignment) {
  RunConfiguration run;
  set_all(run, {{"assignment", assignment}, {"cores", fmt::to_string(cores)}});
  StepPlan step;
  step.cores = cores;
  step.first_minibatch = MinibatchIndex{first};
  step.minibatches = minibatches;
  std::vector<std::vector<std::int64_t>> of_cores(static_cast<std::size_t>(cores));
  for (CoreRank core; core.value() < cores; ++core) {
    const MinibatchRun share = step.share_of(core, run.assignment);
    for (std::int64_t i = 0; i < share.count; ++i) {
      of_cores[static_cast<std::size_t>(core.value())].push_back(share[i].value());
    }
  }
  return of_cores;
}

SimulatedTraining simulated(const Options& options, std::optional<RunSteps> loaded,
                            std::optional<std::int64_t> samples) {
  RunConfiguration run;
  run.clock = Clock::modelled;
  set_all(run, options);
  require_consistent(run);
  require_foreseeable(run);
  if (samples) samples = checked_samples(*samples);
  SignalCheck look_for_signals;
  return simulate_training(run, asked_steps(run, std::move(loaded)), samples,
                           [&] { look_for_signals(); });
}

py::dict simulate_one(const Options& options, const py::object& trace,
                      std::optional<std::int64_t> samples) {
  std::optional<RunSteps> steps = steps_in(trace);
  SimulatedTraining found;
  {
    const py::gil_scoped_release free;
    found = simulated(options, std::move(steps), samples);
  }
  const SimulationResult& result = found.result;
  py::dict dict("epochs"_a = result.epochs, "steps"_a = result.steps, "samples"_a = result.samples,
                "mean_batch"_a = found.mean_batch, "fewest_cores"_a = found.fewest_cores,
                "most_cores"_a = found.most_cores);
  dict.attr("update")(dict_of(row_of(clock_schema(), result.time.value_or(ClockTime()))));
  const std::string end = ended_by(result);
  dict["ended_by"] = end.empty() ? py::object(py::none()) : py::object(py::str(end));
  return dict;
}

}  // namespace

void define_planning(py::module_& module) {
  module.def("plan", &plan);
  module.def("shares", &shares);
  module.def("simulate", &simulate_one);
}

}  // namespace rubato::python
