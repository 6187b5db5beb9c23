#include "planning.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>

#include "clients/python/parts/beside_python.hpp"
#include "clients/python/request.hpp"
#include "clients/python/results/table.hpp"
#include "loop/train/record_schemas.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/workload/run_steps.hpp"
#include "traces.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;
using namespace py::literals;

// Names of options, with the texts of their values.
using Options = std::vector<std::pair<std::string, std::string>>;
using Steps = std::variant<Trace, Availability>;

void set_all(RunConfiguration& run, const Options& options) {
  for (const auto& [name, text] : options) set_option(run, name, text);
}

RunSteps asked_steps(const RunConfiguration& run, std::optional<Steps> steps) {
  if (!steps) return load_run_steps(run);
  return run_steps_of(run, with_end(*std::move(steps), run.on_trace_end));
}

std::int64_t checked_samples(std::int64_t samples) {
  if (samples >= 1 && samples <= kMaxDatasetSize) return samples;
  throw Error(fmt::format("dataset_size {}: accepted are whole numbers from 1 to {}", samples,
                          kMaxDatasetSize));
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

std::vector<EpochPlan> planned(const Options& options, std::optional<Steps> steps,
                               std::int64_t samples, std::optional<std::int64_t> epochs) {
  RunConfiguration run;
  set_all(run, options);
  Planner planner(std::get<Trace>(asked_steps(run, std::move(steps))),
                  {.dataset_size = checked_samples(samples),
                   .minibatch_size = run.minibatch,
                   .cores = run.cores,
                   .remainder = run.remainder});
  SignalCheck look_for_signals;
  return first_epochs(std::move(planner), epochs, [&] { look_for_signals(); });
}

py::list plan(const Options& options, const py::object& trace, std::int64_t samples,
              std::optional<std::int64_t> epochs) {
  if (epochs && (*epochs < 1 || *epochs > kMaxPlannedEpochs)) {
    throw Error(fmt::format("epochs {}: accepted are whole numbers from 1 to {}", *epochs,
                            kMaxPlannedEpochs));
  }
  std::optional<Steps> steps = steps_in(trace);
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

SimulatedTraining simulated(const Options& options, std::optional<Steps> loaded,
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
  std::optional<Steps> steps = steps_in(trace);
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
