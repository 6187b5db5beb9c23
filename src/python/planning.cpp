#include "python/planning.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <rubato/config/run_configuration.hpp>
#include <rubato/core/error.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/plan/shuffle.hpp>
#include <rubato/recipe/quadratic_options.hpp>
#include <rubato/run/workload.hpp>
#include <rubato/sim/simulate.hpp>

#include "config/engine.hpp"
#include "config/run_option.hpp"
#include "config/trace_source.hpp"
#include "python/table.hpp"
#include "python/traces.hpp"
#include "run/step_source.hpp"

namespace rubato::python {

namespace {

namespace py = pybind11;
using namespace py::literals;

constexpr std::int64_t kBuiltInImages = 12'000;

// Names of options and the texts of their values.
using Options = std::vector<std::pair<std::string, std::string>>;
using Steps = std::variant<Trace, Availability>;

void set_all(RunConfiguration& run, const Options& options) {
  for (const auto& [name, text] : options) {
    try {
      run_option(name).set(run, text);
    } catch (const Error& error) {
      throw Error(fmt::format("--{}: {}", name, error.what()));
    }
  }
}

RunSteps steps_of(const RunConfiguration& run, std::optional<Steps> steps) {
  return steps ? run_steps_of(run, *std::move(steps)) : load_run_steps(run);
}

std::int64_t checked_samples(std::int64_t samples) {
  if (samples >= 1 && samples <= kMaxDatasetSize) return samples;
  throw Error(fmt::format("dataset_size {}: accepted are whole numbers from 1 to {}", samples,
                          kMaxDatasetSize));
}

struct PlannedEpoch {
  std::int64_t index = 0;
  bool complete = true;
  std::vector<StepPlan> steps{};
};

py::dict dict_of_epoch(const PlannedEpoch& epoch) {
  Table table;
  for (const StepPlan& step : epoch.steps) {
    table.add({{"step", step.index.value()},
               {"batch", step.batch_size},
               {"cores", step.cores},
               {"first_minibatch", step.first_minibatch.value()},
               {"minibatches", step.minibatches},
               {"shift", step.shift}});
  }
  return py::dict("epoch"_a = epoch.index, "complete"_a = epoch.complete,
                  "steps"_a = table.columns());
}

std::vector<PlannedEpoch> planned(const Options& options, std::optional<Steps> steps,
                                  std::int64_t samples, std::optional<std::int64_t> epochs) {
  RunConfiguration run;
  set_all(run, options);
  const Planner first(std::get<Trace>(steps_of(run, std::move(steps))),
                      {.dataset_size = checked_samples(samples),
                       .minibatch_size = run.minibatch,
                       .cores = run.cores,
                       .remainder = run.remainder});
  if (epochs) require_epochs(first, *epochs);
  const std::int64_t all = first.trace().endless() ? 1 : std::numeric_limits<std::int64_t>::max();
  Planner planner = first;
  std::vector<PlannedEpoch> list;
  while (static_cast<std::int64_t>(list.size()) < epochs.value_or(all)) {
    std::optional<EpochPlan> epoch = planner.next();
    if (!epoch) break;
    list.push_back({epoch->index.value(), epoch->complete, std::move(epoch->steps)});
  }
  return list;
}

py::list plan(const Options& options, const py::object& trace, std::int64_t samples,
              std::optional<std::int64_t> epochs) {
  if (epochs && *epochs < 1) {
    throw Error(fmt::format("epochs {}: accepted are whole numbers from 1 on", *epochs));
  }
  std::optional<Steps> steps = steps_in(trace);
  std::vector<PlannedEpoch> found;
  {
    const py::gil_scoped_release free;
    found = planned(options, std::move(steps), samples, epochs);
  }
  py::list list;
  for (const PlannedEpoch& epoch : found) list.append(dict_of_epoch(epoch));
  return list;
}

// The minibatches of each core.
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

struct Simulated {
  SimulationResult result{};
  std::int64_t fewest_cores = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_cores = 0;
};

Simulated simulated(const Options& options, std::optional<Steps> loaded,
                    std::optional<std::int64_t> samples) {
  RunConfiguration run;
  run.clock = Clock::modelled;
  set_all(run, options);
  require_consistent(run);
  const ModelEntry& model = model_entry(run.model);
  const std::int64_t built_in =
      model.classifies ? kBuiltInImages : parse_quadratic(run.model).samples;
  const RunSteps steps = steps_of(run, std::move(loaded));
  const auto source = make_step_source(run, steps, known_gradient_bytes(run));
  Simulated found;
  found.result = simulate(
      *source,
      {.dataset_size = checked_samples(samples.value_or(built_in)),
       .minibatch_size = run.minibatch,
       .cores = run.cores,
       .remainder = run.remainder,
       .epochs = run.epochs},
      [&](const SimulatedStep& step) {
        found.fewest_cores = std::min(found.fewest_cores, step.plan.cores);
        found.most_cores = std::max(found.most_cores, step.plan.cores);
      },
      budget_of(run));
  if (found.result.steps > 0) return found;
  throw Error(
      fmt::format("--trace {}: there is no step to simulate; accepted: devices that stay as long "
                  "as a step takes",
                  source_of(steps)));
}

py::dict simulate_one(const Options& options, const py::object& trace,
                      std::optional<std::int64_t> samples) {
  std::optional<Steps> steps = steps_in(trace);
  Simulated found;
  {
    const py::gil_scoped_release free;
    found = simulated(options, std::move(steps), samples);
  }
  constexpr double kHour = 3600;
  const SimulationResult& result = found.result;
  const ClockTime time = result.time.value_or(ClockTime());
  const std::string end = result.ended ? "devices ended" : result.reached;
  return py::dict(
      "epochs"_a = result.epochs, "steps"_a = result.steps, "samples"_a = result.samples,
      "mean_batch"_a = static_cast<double>(result.samples) / static_cast<double>(result.steps),
      "fewest_cores"_a = found.fewest_cores, "most_cores"_a = found.most_cores,
      "hours"_a = time.seconds / kHour, "core_hours"_a = time.core_seconds / kHour,
      "money"_a = time.money, "idle_hours"_a = time.idle_seconds / kHour,
      "lost_hours"_a = time.lost_seconds / kHour, "restarts"_a = time.restarts,
      "ended_by"_a = end.empty() ? py::object(py::none()) : py::object(py::str(end)));
}

}  // namespace

void define_planning(py::module_& module) {
  module.def("plan", &plan);
  module.def("shares", &shares);
  module.def("simulate", &simulate_one);
}

}  // namespace rubato::python
