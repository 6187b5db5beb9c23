#include "app/train_run.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <rubato/run/run.hpp>

#include "app/output.hpp"
#include "app/planned_faults.hpp"
#include "app/run_folder_name.hpp"
#include "app/run_messages.hpp"
#include "app/stop_signals.hpp"
#include "core/file.hpp"
#include "core/memory.hpp"
#include "report/progress.hpp"
#include "run/host_texts.hpp"

namespace rubato::app {

namespace {

// Pauses training when there is a signal, or nobody reads its output any more: on several hosts on
// all of them, after the same step.
class Interruption final : public Observer {
 public:
  // `writes` says whether this process is the one that writes a checkpoint.
  Interruption(std::shared_ptr<Progress> progress, std::shared_ptr<Hosts> hosts, bool writes)
      : progress_(std::move(progress)),
        hosts_(std::move(hosts)),
        signals_(writes ? "\nrubato train: finishing the step, then writing a checkpoint; again "
                          "ends at once\n"
                        : nullptr) {}

  void between_steps(Training& training) override {
    const bool wanted = signal() != 0 || !lost().empty();
    if (wanted && hosts_) hosts_->ask_to_pause();
    if (hosts_ ? hosts_->pause_asked() : wanted) training.pause();
  }
  [[nodiscard]] int signal() const { return signals_.received(); }
  // Why something could not be printed; empty where all could.
  [[nodiscard]] std::string lost() const {
    const int error = progress_ ? progress_->error() : 0;
    return error == 0 ? lost_output() : std::generic_category().message(error);
  }

 private:
  std::shared_ptr<Progress> progress_;
  std::shared_ptr<Hosts> hosts_;
  StopSignals signals_;
};

// "3 hosts of weights 2, 1, 1".
std::string words_of(const Hosts& hosts) {
  const std::vector<double> weights = hosts.weights();
  const bool equal =
      std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to()) == weights.end();
  return fmt::format("{} hosts{}\n", hosts.count(),
                     equal ? "" : fmt::format(" of weights {}", fmt::join(weights, ", ")));
}

constexpr const char* kLessMemory = "smaller minibatches or steps and fewer --threads need less";

void warn(const std::string& text) {
  print_error(fmt::format("rubato train: {}\n", text));
}

RunLocation location_of(const TrainArguments& arguments) {
  // The run is kept by the first host.
  if (arguments.hosts.rank != 0) {
    if (!arguments.resume) return {};
    return RunLocation::follow(*arguments.resume, arguments.run, arguments.checkpoint);
  }
  if (!arguments.resume) {
    auto path = arguments.out.value_or(default_run_folder(std::chrono::system_clock::now()));
    check_run_folder(path);
    return RunLocation::create(std::move(path));
  }
  RunLocation location =
      RunLocation::resume(*arguments.resume, arguments.run, arguments.checkpoint);
  for (const std::string& why : location.rejected()) warn(why);
  return location;
}

std::shared_ptr<const Workload> loaded(const TrainArguments& arguments, const LoadWorkload& load) {
  auto workload = load(arguments.run);
  const std::string slow = workload->warning();
  if (arguments.hosts.rank == 0 && !slow.empty()) warn(slow);
  return workload;
}

// None where `connect` is empty.
std::shared_ptr<Hosts> connected(const TrainArguments& arguments, const Workload& workload,
                                 const ConnectHosts& connect) {
  if (!connect) return nullptr;
  return connect(arguments.hosts, what_is_asked_for(arguments.run, workload));
}

// A run as a user at a terminal has it: what is shown of it, what stops it, and what it answers.
class TrainRun {
 public:
  TrainRun(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
           RunLocation location, const std::shared_ptr<Hosts>& hosts);

  ExitCode execute();

 private:
  // What the first of several hosts shows, or the only one.
  void show(const std::shared_ptr<Hosts>& hosts);
  ExitCode interrupted();
  ExitCode finished(const RunOutcome& outcome);
  [[nodiscard]] ExitCode exit_code_of(const RunOutcome& outcome) const;
  [[nodiscard]] std::string to_go_on() const;
  [[nodiscard]] std::string way_out();
  [[nodiscard]] std::string way_out_of_memory();
  [[nodiscard]] std::string way_out_of_loss();
  [[nodiscard]] std::string way_out_of_step(std::int64_t steps);
  [[nodiscard]] bool writes() const { return arguments_.hosts.rank == 0; }

  const TrainArguments& arguments_;
  Run run_;
  std::shared_ptr<PlannedFaults> planned_faults_;
  std::shared_ptr<Progress> progress_;
  std::shared_ptr<Interruption> interruption_;
};

TrainRun::TrainRun(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
                   RunLocation location, const std::shared_ptr<Hosts>& hosts)
    : arguments_(arguments), run_(arguments.run, std::move(workload), std::move(location), hosts) {
  if (writes()) show(hosts);
  interruption_ = run_.trainer().add_observer<Interruption>(progress_, hosts, writes());
}

void TrainRun::show(const std::shared_ptr<Hosts>& hosts) {
  if (const std::string difference = run_.warning(); !difference.empty()) warn(difference);
  Trainer& trainer = run_.trainer();
  const RunConfiguration& options = arguments_.run;
  planned_faults_ = trainer.add_observer<PlannedFaults>(trainer.options().faults.planned,
                                                        StepIndex{trainer.result().steps});
  const bool redrawn = !arguments_.quiet && can_redraw(STDOUT_FILENO);
  for (const std::string& line : idle_arguments(arguments_, run_.steps(), redrawn)) warn(line);
  if (!arguments_.quiet) {
    print_out(opening(options, run_.workload(), run_.steps()));
    print_out(kernel_words());
    if (hosts) print_out(words_of(*hosts));
    if (arguments_.resume) {
      print_out(resumption(trainer.result(), run_.location().from(), run_.kept_in()));
    }
    // What does not fill a minibatch is carried or dropped.
    const std::int64_t minibatch = options.remainder == Remainder::carry ? 1 : options.minibatch;
    progress_ = trainer.add_observer<Progress>(
        stdout,
        ProgressOptions{.epochs = options.epochs,
                        .samples_per_epoch = run_.workload().samples() / minibatch * minibatch,
                        .terminal = redrawn,
                        .log_steps = options.log_steps,
                        .top_k = test_metrics_of(options).top_k,
                        .budget = trainer.options().budget});
  }
}

ExitCode TrainRun::execute() {
  try {
    const RunOutcome outcome = run_.execute();
    if (progress_) progress_->finish();
    return outcome.end == RunOutcome::End::paused ? interrupted() : finished(outcome);
  } catch (const OutputError& error) {
    if (progress_) progress_->finish();
    throw OutputError(error.what() + way_out());
  } catch (const HostLost& lost) {
    if (progress_) progress_->finish();
    throw HostLost(lost.what() + way_out_of_loss());
  } catch (const std::exception& error) {
    const auto memory = memory_failure(error, kLessMemory);
    if (!memory) throw;
    if (progress_) progress_->finish();
    throw MemoryError(*memory + way_out_of_memory());
  }
}

ExitCode TrainRun::interrupted() {
  const int signal = interruption_->signal();
  const ExitCode code = signal == SIGINT ? ExitCode::interrupted : ExitCode::terminated;
  if (!writes()) return code;
  const auto file = run_.write_checkpoint();
  if (!interruption_->lost().empty()) {
    warn(fmt::format("cannot write the output: {}; {}", interruption_->lost(), to_go_on()));
    return ExitCode::output_lost;
  }
  warn(fmt::format("stopped by a signal{} after {} steps; the checkpoint is {}\n{}",
                   signal == 0 ? " to another host" : "", run_.trainer().result().steps,
                   file.string(), to_go_on()));
  return code;
}

ExitCode TrainRun::finished(const RunOutcome& outcome) {
  if (!writes()) return exit_code_of(outcome);
  const std::string folder = run_.location().path().string();
  if (outcome.end == RunOutcome::End::diverged) {
    warn(fmt::format("{}\ntry a lower --lr or another --rule\nmetrics are kept in {}",
                     outcome.reason, folder));
    return exit_code_of(outcome);
  }
  const RunSummary& summary = *outcome.summary;
  for (const std::string& line : planned_faults_->missed(summary.result.steps)) warn(line);
  if (!arguments_.quiet) print_out(closing(summary, run_));
  if (const std::string lost = interruption_->lost(); !lost.empty()) {
    warn(fmt::format("cannot write the output: {}; the run is complete, in {}", lost, folder));
    return ExitCode::output_lost;
  }
  if (const auto missed = missed_target(arguments_.run, summary.result)) warn(*missed);
  return exit_code_of(outcome);
}

ExitCode TrainRun::exit_code_of(const RunOutcome& outcome) const {
  if (outcome.end == RunOutcome::End::diverged) return ExitCode::diverged;
  return missed_target(arguments_.run, outcome.summary->result) ? ExitCode::target_missed
                                                                : ExitCode::good;
}

std::string TrainRun::to_go_on() const {
  return fmt::format("to go on: rubato train --resume {}", run_.location().path().string());
}

// What is left when something could not be written: a line for the user.
std::string TrainRun::way_out() {
  if (!run_.checkpoints().files().empty()) {
    return "\nthe checkpoints before it are kept; " + to_go_on();
  }
  try {
    return fmt::format("\nthe weights after {} steps are in {}", run_.trainer().result().steps,
                       run_.write_weights().string());
  } catch (const OutputError&) {
    return "\nthere is no checkpoint to go on from";
  }
}

// The same when memory could not be had.
std::string TrainRun::way_out_of_memory() {
  if (!writes()) return "";
  const std::int64_t steps = run_.trainer().result().steps;
  if (steps == 0) return "\nit was in the first step: nothing is lost";
  return way_out_of_step(steps);
}

// And when there are fewer hosts.
std::string TrainRun::way_out_of_loss() {
  if (!writes()) return "";
  const std::int64_t steps = run_.trainer().result().steps;
  return steps == 0 ? "\nit was in the first step" : way_out_of_step(steps);
}

// The checkpoint of the step before is written where there is one.
std::string TrainRun::way_out_of_step(std::int64_t steps) {
  try {
    if (run_.trainer().has_state()) {
      return fmt::format("\nafter {} steps; the checkpoint is {}; {}", steps,
                         run_.write_checkpoint().string(), to_go_on());
    }
  } catch (const std::exception& error) {
    warn(fmt::format("no checkpoint of {} steps: {}", steps, error.what()));
  }
  if (run_.checkpoints().files().empty()) return "\nthere is no checkpoint to go on from";
  return "\nthe checkpoints before it are kept; " + to_go_on();
}

}  // namespace

ExitCode train(const TrainArguments& arguments, const LoadWorkload& load) {
  return train_on_hosts(arguments, load, {});
}

ExitCode train_on_hosts(const TrainArguments& arguments, const LoadWorkload& load,
                        const ConnectHosts& connect) {
  // Before anything takes time.
  RunLocation location = location_of(arguments);
  auto workload = loaded(arguments, load);
  const auto hosts = connected(arguments, *workload, connect);
  return TrainRun(arguments, std::move(workload), std::move(location), hosts).execute();
}

}  // namespace rubato::app
