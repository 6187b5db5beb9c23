// The epochs come from Planner, which needs only the trace and the number of samples; neither data
// nor a model is loaded. The JSON is written epoch by epoch and, within an epoch, core by core;
// with --indices, SampleOrder gives the samples in the order in which training with that seed takes
// them. Epochs and steps count from 1 in options and tables, and from 0 in JSON.

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/text/json.hpp"
#include "base/core/text/text_table.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/number_text.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "forecasts.hpp"
#include "loop/data/images/digits.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/run_request.hpp"
#include "runs/run/workload/run_steps.hpp"
#include "trace_views.hpp"

namespace rubato::app {

namespace {

MinibatchRun share_of(const StepPlan& step, CoreRank core, Assignment assignment) {
  return core.value() < step.cores ? step.share_of(core, assignment) : MinibatchRun{};
}

using Indices = std::vector<std::vector<std::int64_t>>;

// The work of a core in an epoch.
struct PlannedCore {
  std::int64_t core = 0;
  Indices assignments{};
  std::optional<Indices> indices{};
};

struct PlannedEpoch {
  std::int64_t epoch = 0;
  std::array<std::int64_t, 2> trace_range{};
  std::vector<std::int64_t> batch_sizes{};
  std::vector<PlannedCore> cores{};
};

JsonForm<PlannedEpoch> epoch_form() {
  return form_of_object<PlannedEpoch>(
      {{"epoch", "index of the epoch", &PlannedEpoch::epoch},
       {"trace_range", "its first step, and the step behind its last, over the whole run",
        &PlannedEpoch::trace_range},
       {"batch_sizes", "samples of each step", &PlannedEpoch::batch_sizes},
       {"cores", "the cores of the step that has most", &PlannedEpoch::cores,
        form_of_object<PlannedCore>(
            {{"core", "index of the core", &PlannedCore::core},
             {"assignments",
              "for each step, the minibatches that the core computes, by their indices in the "
              "epoch; none where it takes no part",
              &PlannedCore::assignments},
             {"indices?",
              "with --indices, for each of its minibatches in all steps, "
              "the indices of its samples in the data set",
              &PlannedCore::indices}})}});
}

PlannedCore planned_core(const EpochPlan& epoch, CoreRank core, Assignment assignment,
                         SampleOrder* samples) {
  PlannedCore planned{.core = core.value()};
  if (samples != nullptr) planned.indices.emplace();
  for (const StepPlan& step : epoch.steps) {
    const MinibatchRun run = share_of(step, core, assignment);
    if (samples != nullptr) samples->prepare(epoch.index, step);
    std::vector<std::int64_t>& minibatches = planned.assignments.emplace_back();
    for (std::int64_t i = 0; i < run.count; ++i) {
      minibatches.push_back(run[i].value());
      if (samples == nullptr) continue;
      const auto indices = samples->minibatch(step, run[i]);
      planned.indices->emplace_back(indices.begin(), indices.end());
    }
  }
  return planned;
}

PlannedEpoch planned_epoch(const PlanOptions& plan, const EpochPlan& epoch, const PlanView& view) {
  PlannedEpoch planned{.epoch = epoch.index.value(),
                       .trace_range = {epoch.first_step().value(), epoch.end_step().value()}};
  std::int64_t most_cores = 0;
  for (const StepPlan& step : epoch.steps) {
    planned.batch_sizes.push_back(step.batch_size);
    most_cores = std::max(most_cores, step.cores);
  }
  std::optional<SampleOrder> samples;
  if (view.indices) samples.emplace(plan.dataset_size, plan.minibatch_size, view.seed);
  for (CoreRank core; core.value() < most_cores; ++core) {
    planned.cores.push_back(
        planned_core(epoch, core, view.assignment, samples ? &*samples : nullptr));
  }
  return planned;
}

}  // namespace

std::string plan_json(const PlanOptions& plan, std::span<const EpochPlan> epochs,
                      const PlanView& view) {
  // Each epoch is a line of its own, which is short enough to read, and only one epoch at a time is
  // held as a tree.
  const JsonForm<PlannedEpoch> form = epoch_form();
  std::string text = "{\"epochs\": [";
  for (const EpochPlan& epoch : epochs) {
    if (&epoch != epochs.data()) text += ',';
    text += '\n' + json_text(form.write(planned_epoch(plan, epoch, view)));
  }
  return text + "\n]}\n";
}

nlohmann::ordered_json plan_schema() {
  using Epochs = std::vector<PlannedEpoch>;
  return form_of_object<Epochs>(
             {{"epochs", "the epochs that were asked for", std::identity(), epoch_form()}})
      .schema;
}

namespace {

// Formats 12 as "12th".
std::string ordinal(std::int64_t value) {
  const bool teen = value % 100 / 10 == 1;
  const std::int64_t last = value % 10;
  const char* const suffix = !teen && last == 1   ? "st"
                             : !teen && last == 2 ? "nd"
                             : !teen && last == 3 ? "rd"
                                                  : "th";
  return grouped(value) + suffix;
}

std::string count_of(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

// A row about one epoch, or about all of them.
std::vector<std::string> row_of(std::string name, std::span<const EpochPlan> epochs,
                                const PlanOptions& plan) {
  std::vector<std::int64_t> sizes;
  std::int64_t samples = 0;
  std::int64_t busy_substeps = 0;
  std::int64_t all_substeps = 0;
  for (const EpochPlan& epoch : epochs) {
    samples += samples_of(epoch, plan);
    for (const StepPlan& step : epoch.steps) {
      sizes.push_back(step.batch_size);
      busy_substeps += step.minibatches;
      all_substeps += step.cores * ((step.minibatches + step.cores - 1) / step.cores);
    }
  }
  const std::int64_t dropped = std::ssize(epochs) * plan.dataset_size - samples;
  std::sort(sizes.begin(), sizes.end());
  // An epoch that lies within one step has no step of its own.
  if (sizes.empty())
    return {std::move(name), "", "0", "", "", "", grouped(samples), grouped(dropped), ""};
  const double utilisation = static_cast<double>(busy_substeps) / static_cast<double>(all_substeps);
  return {std::move(name),
          fmt::format("{}-{}", epochs.front().first_step().value() + 1,
                      epochs.back().end_step().value()),
          grouped(static_cast<std::int64_t>(sizes.size())),
          grouped(sizes.front()),
          grouped(sizes[(sizes.size() - 1) / 2]),
          grouped(sizes.back()),
          grouped(samples),
          grouped(dropped),
          fmt::format("{:.1f} %", 100 * utilisation)};
}

void put_epochs(std::string& text, const PlanOptions& plan, std::span<const EpochPlan> epochs,
                LineWidth width) {
  const std::vector<std::string> header{"epoch", "range",   "steps",   "min batch",  "median",
                                        "max",   "samples", "dropped", "utilisation"};
  TextTable table(std::vector(header.size(), Column::right));
  table.add(header);
  for (const EpochPlan& epoch : epochs) {
    table.add(row_of(fmt::format("{}{}", epoch.complete ? "" : "*", epoch.index.value() + 1),
                     std::span(&epoch, 1), plan));
  }
  if (epochs.size() > 1) table.add(row_of("all", epochs, plan));
  text += '\n' + table.text(width);
  if (!epochs.back().complete) text += "* the trace stops before this epoch is full\n";
}

std::string duration(const Planner& planner) {
  const Trace& trace = planner.trace();
  const TraceExtent extent = extent_of(planner);
  std::string text = fmt::format("The trace lasts {}", count_of(extent.epochs, "epoch"));
  if (extent.further_steps > 0) {
    text += fmt::format(" and {} ({}) of the {}", count_of(extent.further_steps, "further step"),
                        count_of(extent.further_samples, "sample"), ordinal(extent.epochs + 1));
  }
  text += fmt::format("; {}", count_of(trace.length(), "step"));
  if (trace.end() == TraceEnd::hold) text += "; then it holds its last step";
  if (trace.end() == TraceEnd::cycle) text += "; then it begins again";
  return text + ".\n";
}

std::string cores_text(const Planner& planner) {
  const CoreRange cores = cores_of(planner.trace(), planner.options().cores);
  return cores.fewest == cores.most
             ? count_of(cores.most, "core")
             : fmt::format("{} to {} cores", grouped(cores.fewest), grouped(cores.most));
}

}  // namespace

std::string plan_table(const Planner& planner, std::span<const EpochPlan> epochs,
                       const PlanView& view, LineWidth width) {
  const PlanOptions& plan = planner.options();
  const Trace& trace = planner.trace();
  std::string text = fmt::format("trace  {}\n", trace.source());
  if (!trace.scaling().empty()) text += fmt::format("scale  {}\n", trace.scaling());
  text += fmt::format("data   {} in minibatches of {}, on {}, {}\n",
                      count_of(plan.dataset_size, "sample"), grouped(plan.minibatch_size),
                      cores_text(planner), choice_name(kAssignments, view.assignment));
  if (!view.prices.empty()) text += fmt::format("price  {}\n", view.prices);
  if (!epochs.empty()) put_epochs(text, plan, epochs, width);
  const bool constant = trace.length() == 1 && trace.endless();
  text += '\n';
  text += constant ? "The trace never ends.\n" : duration(planner);
  return text;
}

namespace {

struct PlanCommandOptions {
  /// The configuration, of which only the options of elasticity can be set.
  RunConfiguration run;
  /// The number of samples.
  std::int64_t dataset_size = kBuiltinSamples;
  std::uint64_t seed = 42;
  /// The only epoch to show, counted from 1.
  std::optional<std::int64_t> epoch;
  /// The number of epochs to show, beginning with the first.
  std::optional<std::int64_t> epochs;
  bool indices = false;
  bool json = false;
};

void define_data(CommandLine& line, PlanCommandOptions& options) {
  line.group("Data");
  line.whole("dataset-size", "N", "samples in the data set", fmt::to_string(options.dataset_size),
             options.dataset_size, 1, kMaxDatasetSize);
  line.option("seed", "N",
              "seed of the shuffling, with --indices; the first epoch shuffles with N, the second "
              "with N + 1, and so on",
              fmt::to_string(options.seed),
              [&](const std::string& text) { options.seed = parse_seed(text); });
}

void define_output(CommandLine& line, PlanCommandOptions& options) {
  line.group("What to print");
  line.whole("epoch", "E", "epoch E only, counted from 1", "", options.epoch, 1, kMaxPlannedEpochs);
  line.whole("epochs", "N", "the first N epochs [all of the trace; one if it never ends]", "",
             options.epochs, 1, kMaxPlannedEpochs);
  line.flag("json",
            "print JSON: the minibatches of every core in every step; files and JSON count epochs "
            "and steps from 0",
            options.json);
  line.flag("indices", "with --json: also the samples of every minibatch", options.indices);
}

std::vector<EpochPlan> one_epoch(Planner planner, std::int64_t wanted) {
  std::int64_t held = 0;
  while (std::optional<EpochPlan> epoch = planner.next()) {
    if (++held == wanted) return {*std::move(epoch)};
  }
  throw_error("--epoch: the trace {} ends before epoch {}; accepted: {}", planner.trace().source(),
              wanted,
              held == 0   ? std::string("a longer trace, or another --on-trace-end")
              : held == 1 ? std::string("1")
                          : fmt::format("1 to {}", held));
}

// Empty if the trace has no prices.
std::string prices_of(const RunSteps& loaded) {
  const auto* const zones = std::get_if<Zones>(&loaded);
  if (zones == nullptr) return {};
  const auto prices = summary_of(zones->only()).prices;
  return prices ? prices_text(*prices) : std::string();
}

std::vector<EpochPlan> epochs_to_show(const Planner& planner, const PlanCommandOptions& options) {
  if (options.epoch && options.epochs) {
    throw Error("--epoch and --epochs exclude each other; accepted: one of them");
  }
  if (options.epoch) return one_epoch(planner, *options.epoch);
  return first_epochs(planner, options.epochs);
}

}  // namespace

int plan_command(std::span<const std::string> arguments) {
  PlanCommandOptions options;
  CommandLine line("rubato plan",
                   "Shows what a trace will do before anything is trained: its epochs, what every "
                   "core does, and how long the trace lasts.");
  define_run_options(line, options.run, Commands::plan);
  define_data(line, options);
  define_output(line, options);
  line.footer(
      "Values in [] are the defaults. Examples:\n"
      "  rubato plan\n"
      "  rubato plan --trace trace.csv --dataset-size 60000 --cores 16\n"
      "  rubato plan --trace 128 --cores 4 --epoch 1 --json --indices");
  line.parse(arguments);
  if (options.indices && !options.json) {
    throw Error("--indices: the table has no room for samples; accepted: together with --json");
  }
  const RunConfiguration& run = options.run;
  line.refuse_idle("seed", !options.indices, "no samples are printed", "with --indices");
  require_none_idle(line.given(), run);

  const RunSteps loaded = load_steps(run.trace, run.on_trace_end, "--trace: ");
  const Planner planner(std::get<Trace>(run_steps_of(run, loaded)),
                        plan_options(run, options.dataset_size, 0));
  const std::vector<EpochPlan> epochs = epochs_to_show(planner, options);
  if (const auto note = idle_cores(planner.trace(), run); note && line.given().contains("cores")) {
    print_error(fmt::format("rubato plan: {}\n", *note));
  }
  for (const std::string& note : reading_notes(*run.trace, loaded)) {
    print_error(fmt::format("rubato plan: {}\n", note));
  }
  const PlanView view{run.assignment, options.seed, options.indices, prices_of(loaded)};
  if (options.json) {
    print_out(plan_json(planner.options(), epochs, view));
  } else {
    print_text(plan_table(planner, epochs, view, output_width()));
  }
  return 0;
}

}  // namespace rubato::app
