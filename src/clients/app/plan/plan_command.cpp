#include "plan_command.hpp"

#include <optional>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/plan.hpp>

#include "clients/app/line/command_line.hpp"
#include "clients/app/line/idle_options.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "plan_output.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/run_request.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato::app {

namespace {

struct PlanCommandOptions {
  /// The configuration, of which only the options of elasticity can be set.
  RunConfiguration run;
  /// The number of samples.
  std::int64_t dataset_size = 12'000;
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
  line.option("dataset-size", "N", "samples in the data set", fmt::to_string(options.dataset_size),
              [&](const std::string& text) {
                options.dataset_size = parse_whole(text, 1, kMaxDatasetSize);
              });
  line.option("seed", "N",
              "seed of the shuffling, with --indices; the first epoch shuffles with N, the second "
              "with N + 1, and so on",
              fmt::to_string(options.seed),
              [&](const std::string& text) { options.seed = parse_seed(text); });
}

void define_output(CommandLine& line, PlanCommandOptions& options) {
  line.group("What to print");
  line.option("epoch", "E", "epoch E only, counted from 1", "", [&](const std::string& text) {
    options.epoch = parse_whole(text, 1, kMaxPlannedEpochs);
  });
  line.option(
      "epochs", "N", "the first N epochs [all of the trace; one if it never ends]", "",
      [&](const std::string& text) { options.epochs = parse_whole(text, 1, kMaxPlannedEpochs); });
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
  throw Error(fmt::format("--epoch: the trace {} ends before epoch {}; accepted: {}",
                          planner.trace().source(), wanted,
                          held == 0   ? std::string("a longer trace, or another --on-trace-end")
                          : held == 1 ? std::string("1")
                                      : fmt::format("1 to {}", held)));
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
  const IdleOption seed{.option = "seed",
                        .idle = !options.indices,
                        .why = "no samples are printed",
                        .accepted = "with --indices"};
  require_none_idle(line, {&seed, 1});
  require_none_idle(line.given(), run);

  const Planner planner(load_trace(run), {.dataset_size = options.dataset_size,
                                          .minibatch_size = run.minibatch,
                                          .cores = run.cores,
                                          .remainder = run.remainder});
  const std::vector<EpochPlan> epochs = epochs_to_show(planner, options);
  if (const auto note = idle_cores(planner.trace(), run); note && line.given().contains("cores")) {
    print_error(fmt::format("rubato plan: {}\n", *note));
  }
  const PlanView view{run.assignment, options.seed, options.indices};
  if (options.json) {
    print_out(plan_json(planner.options(), epochs, view));
  } else {
    print_text(plan_table(planner, epochs, view, output_width()));
  }
  return 0;
}

}  // namespace rubato::app
