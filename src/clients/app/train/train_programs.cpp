// These are the bodies of `train`, `verify` and `calibrate`, which both programs call; `load`
// decides which engine makes the workload. train() is train_on_hosts() without a connection. That
// function opens the folder, then loads data and model, then connects the hosts, and only then
// handles signals, so that mistakes are found before others have to wait. verify() prints each row
// before it trains, as a training may take long; calibrate() has nothing but the value of --cluster
// on stdout.

#include "train_programs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/verify.hpp>
#include <rubato/runs/calibration.hpp>

#include "base/core/file.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/signals.hpp"
#include "clients/app/past/past_commands.hpp"
#include "loop/data/images/digits.hpp"
#include "runs/config/allowed.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/plugin.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/fork.hpp"
#include "runs/run/run_description.hpp"
#include "runs/run/workload/run_steps.hpp"
#include "terminal_run.hpp"

namespace rubato::app {

namespace {

// The request with the folder that it gets by default.
RunRequest with_folder(RunRequest request) {
  if (!request.out && !request.resume) {
    request.out = default_run_folder(std::chrono::system_clock::now());
  }
  return request;
}

RunLocation location_of_alone(const TrainArguments& arguments, const LoadWorkload& load) {
  const RunRequest& request = arguments;
  ReplayLine line("rubato train", arguments.quiet);
  return location_to_train(with_folder(request), line.parts(load));
}

RunLocation location_of_host(const TrainArguments& arguments, const LoadWorkload& load) {
  if (!arguments.hosts.several()) return location_of_alone(arguments, load);
  // The first host keeps the run.
  if (arguments.hosts.meeting.rank == 0) return location_of_first(arguments);
  if (arguments.continues && is_there(*arguments.out)) {
    return RunLocation::follow(*arguments.out, arguments.run, {}, /*again=*/true);
  }
  if (!arguments.resume) return {};
  return RunLocation::follow(*arguments.resume, arguments.run, arguments.checkpoint);
}

// Returns the number of training samples if it is known without reading files.
std::optional<std::int64_t> samples_of(const RunConfiguration& run) {
  if (const auto own = run.model->own_samples()) return own;
  if (run.data != RunConfiguration().data) return std::nullopt;
  return run.validation ? std::nullopt : std::optional(kBuiltinSamples);
}

// Returns null if `connect` is empty.
std::shared_ptr<Hosts> connected(const TrainArguments& arguments, const Workload& workload,
                                 const ConnectHosts& connect) {
  if (!connect) return nullptr;
  C10dOptions meeting = meeting_of(arguments.hosts);
  meeting.equal = what_is_asked_for(arguments.run, workload);
  return connect(meeting);
}

}  // namespace

RunLocation location_of_first(const TrainArguments& arguments) {
  const RunRequest& request = arguments;
  return location_of(with_folder(request), warn);
}

ExitCode report_complete(const TrainArguments& arguments) {
  if (!arguments.quiet)
    print_text(fmt::format("{}: the run is complete\n", arguments.out->string()));
  return ExitCode::good;
}

void check_trace(const RunConfiguration& run) {
  const RunSteps steps = load_run_steps(run);
  require_steps(run, {.steps = steps, .samples = samples_of(run), .source = [&] {
                        const bool is_known = run.model->parameters != nullptr;
                        return make_step_source(run, steps,
                                                is_known ? known_gradient_bytes(run) : 0);
                      }});
}

int run_program(const TrainArguments& arguments, const std::function<ExitCode()>& program) {
  try {
    return static_cast<int>(program());
  } catch (const TrainingError& error) {
    if (arguments.verbose) print_error(error.details() + "\n");
    throw;
  } catch (...) {
    rethrow_of_plugins(*arguments.run.plugin);
  }
}

ExitCode train(const TrainArguments& arguments, const LoadWorkload& load) {
  return train_on_hosts(arguments, load, {});
}

ExitCode train_on_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                        const ConnectHosts& connect) {
  if (is_complete(arguments)) return report_complete(arguments);
  // The folder is checked before anything takes time.
  RunLocation location = location_of_host(arguments, load);
  auto workload = load(arguments.run);
  const auto hosts = connected(arguments, *workload, connect);
  const RunRole role = arguments.hosts.meeting.rank == 0 ? RunRole::first : RunRole::follower;
  StopSignals signals(nullptr, SignalRole::run);
  TerminalRun run(arguments, std::move(workload), std::move(location), hosts, role, signals);
  // A run without elastic hosts never has to regroup.
  static_cast<void>(run.execute());
  return run.code().value();
}

ExitCode verify(const TrainArguments& arguments, const LoadWorkload& load) {
  const RunConfiguration& options = arguments.run;
  const std::shared_ptr<const Workload> workload = load(options);
  if (const std::string slow = workload->warning(); !slow.empty()) {
    print_error(fmt::format("rubato verify: {}\n", slow));
  }
  const RunSteps steps_of_run = load_run_steps(options);
  const TrainOptions asked = train_options(options);
  Verification verification(
      [&](const auto& change) {
        TrainOptions changed = asked;
        change(changed);
        return make_trainer(*workload, options,
                            make_step_source(options, steps_of_run, workload->gradient_bytes()),
                            changed);
      },
      arguments.steps);
  print_text(kernel_words());
  const bool wide = output_width().columns >= LineWidth::kProse;
  if (wide) {
    print_out(fmt::format("{:<22} {:>5} {:>7}  {:<14} {}\n", "trained with", "cores", "threads",
                          "reducer", "hash of weights and metrics"));
  }
  int differences = 0;
  std::int64_t steps = 0;
  const std::vector<Execution> executions = executions_to_compare(asked, arguments.steps);
  for (const Execution& execution : executions) {
    if (wide) {
      print_out(fmt::format("{:<22} {:>5} {:>7}  {:<14} ", execution.what, execution.cores,
                            execution.threads, execution.reduce));
    } else {
      print_text(fmt::format("{}: {} cores, {} threads, {}\n", execution.what, execution.cores,
                             execution.threads, execution.reduce));
      print_out("  ");
    }
    // A closed pipe ends the program here: nobody would read the remaining lines.
    require_output();
    try {
      const ExecutionOutcome outcome = verification.train(execution);
      print_out(
          fmt::format("{}{}\n", outcome.hash.substr(0, 16), outcome.difference ? "  DIFFERS" : ""));
      if (outcome.difference) {
        print_text(fmt::format("  {}\n", *outcome.difference));
        ++differences;
      }
      if (steps == 0) steps = outcome.steps;
    } catch (const Diverged& diverged) {
      print_out("\n");
      print_error(fmt::format("rubato verify: {}\n{}\n", diverged.what(), diverged.advice()));
      return ExitCode::diverged;
    }
  }
  if (differences > 0) {
    print_text(fmt::format("{} of {} ways gave other bits than the first in {} steps\n",
                           differences, executions.size(), steps));
    return ExitCode::differs;
  }
  print_text(fmt::format("{} steps, {} ways: the same bits\n", steps, executions.size()));
  return ExitCode::good;
}

ExitCode calibrate(const TrainArguments& arguments, const LoadWorkload& load) {
  const RunConfiguration& run = arguments.run;
  const std::shared_ptr<const Workload> workload = load(run);
  // All but the result goes to stderr, so that stdout can be the value of --cluster.
  if (const std::string slow = workload->warning(); !slow.empty()) {
    print_error(fmt::format("rubato calibrate: {}\n", slow));
  }
  const Calibration found = rubato::calibrate(*workload, run);
  print_error(
      fmt::format("{}, minibatch {}, one thread: medians of {} steps, half of them within "
                  "{:.1f} %{}\n",
                  run.model.text(), run.minibatch, found.steps, 100 * found.spread,
                  arguments.factor == 1 ? "" : fmt::format("; times {}", arguments.factor)));
  print_out(fmt::format("substep={:.4g},update={:.4g},bytes={}\n",
                        arguments.factor * found.substep_seconds,
                        arguments.factor * found.update_seconds, found.gradient_bytes));
  return ExitCode::good;
}

const TrainProgram* train_program_of(std::string_view name) {
  static constexpr std::array<TrainProgram, 4> kPrograms{
      {{"train", TrainCommand::train, train},
       {"serve-runs", TrainCommand::train, serve_runs},
       {"verify", TrainCommand::verify, verify},
       {"calibrate", TrainCommand::calibrate, calibrate}}};
  const auto* const found = std::ranges::find(kPrograms, name, &TrainProgram::name);
  return found == kPrograms.end() ? nullptr : found;
}

}  // namespace rubato::app
