#include "app/terminal_run.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "app/output.hpp"
#include "app/planned_faults.hpp"
#include "app/run_messages.hpp"
#include "app/stop_signals.hpp"
#include "app/way_out.hpp"
#include "core/file.hpp"
#include "core/memory.hpp"
#include "report/progress.hpp"

namespace rubato::app {

namespace {

// "3 hosts of weights 2, 1, 1".
std::string words_of(const Hosts& hosts) {
  const std::vector<double> weights = hosts.weights();
  const bool equal =
      std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to()) == weights.end();
  return fmt::format("{} hosts{}\n", hosts.count(),
                     equal ? "" : fmt::format(" of weights {}", fmt::join(weights, ", ")));
}

constexpr const char* kFinishing =
    "\nrubato train: finishing the step, then writing a checkpoint; again ends at once\n";
constexpr const char* kLessMemory = "smaller minibatches or steps and fewer --threads need less";

// Only the run folder that the user has asked for has checkpoints.
RunConfiguration configuration_of(const TrainArguments& arguments, RunRole role) {
  RunConfiguration configuration = arguments.run;
  if (role == RunRole::follower) configuration.checkpoint_every = "never";
  return configuration;
}

}  // namespace

void warn(const std::string& text) {
  print_error(fmt::format("rubato train: {}\n", text));
}

// Pauses training when there is a signal, or nobody reads its output any more: on several hosts on
// all of them, after the same step.
class TerminalRun::Interruption final : public Observer {
 public:
  Interruption(std::shared_ptr<Progress> progress, std::shared_ptr<Hosts> hosts,
               const StopSignals& signals)
      : progress_(std::move(progress)), hosts_(std::move(hosts)), signals_(signals) {}

  void between_steps(Training& training) override {
    const bool wanted = signals_.received() != 0 || !lost().empty();
    if (wanted && hosts_) hosts_->ask_to_pause();
    if (hosts_ ? hosts_->pause_asked() : wanted) training.pause();
  }
  // Why something could not be printed; empty where all could.
  [[nodiscard]] std::string lost() const {
    const int error = progress_ ? progress_->error() : 0;
    return error == 0 ? lost_output() : std::generic_category().message(error);
  }

 private:
  std::shared_ptr<Progress> progress_;
  std::shared_ptr<Hosts> hosts_;
  const StopSignals& signals_;
};

TerminalRun::TerminalRun(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
                         RunLocation location, const std::shared_ptr<Hosts>& hosts, RunRole role,
                         StopSignals& signals)
    : arguments_(arguments),
      role_(role),
      signals_(signals),
      hosts_(hosts),
      run_(configuration_of(arguments, role), std::move(workload), std::move(location), hosts) {
  if (writes()) show();
  interruption_ = run_.trainer().add_observer<Interruption>(progress_, hosts, signals);
  signals.announce(writes() ? kFinishing : nullptr);
}

TerminalRun::~TerminalRun() = default;

void TerminalRun::show() {
  if (const std::string difference = run_.warning(); !difference.empty()) warn(difference);
  Trainer& trainer = run_.trainer();
  const RunConfiguration& options = arguments_.run;
  planned_faults_ = trainer.add_observer<PlannedFaults>(trainer.options().faults.planned,
                                                        StepIndex{trainer.result().steps});
  const bool redrawn = !arguments_.quiet && can_redraw(STDOUT_FILENO);
  for (const std::string& line : idle_arguments(arguments_, run_.steps(), redrawn)) warn(line);
  if (!arguments_.quiet) {
    if (role_ == RunRole::first) {
      print_text(opening(options, run_.workload(), run_.steps()));
      if (const auto scaled = scaled_rate(arguments_, run_.steps())) print_text(*scaled + "\n");
      print_text(kernel_words());
      if (hosts_) print_text(words_of(*hosts_));
    }
    if (role_ == RunRole::first && arguments_.resume) {
      print_text(resumption(trainer.result(), run_.location().from(), run_.kept_in()));
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

std::optional<ExitCode> TerminalRun::execute() {
  try {
    const RunOutcome outcome = run_.execute();
    const bool paused = outcome.end == RunOutcome::End::paused;
    if (paused && hosts_ && hosts_->regroup_due() && !hosts_->pause_asked()) return std::nullopt;
    if (progress_) progress_->finish();
    return paused ? stop() : finished(outcome);
  } catch (const OutputError& error) {
    if (progress_) progress_->finish();
    throw OutputError(error.what() + (writes() ? way_out(run_, to_go_on()) : ""));
  } catch (const HostLost& lost) {
    throw_lost(lost);
  } catch (const std::exception& error) {
    const auto memory = memory_failure(error, kLessMemory);
    if (!memory) throw;
    if (progress_) progress_->finish();
    throw MemoryError(*memory + what_is_left());
  }
}

void TerminalRun::throw_lost(const HostLost& lost) {
  if (progress_) progress_->finish();
  throw HostLost(lost.what() + what_is_left());
}

ExitCode TerminalRun::stop() {
  const int signal = signals_.received();
  const ExitCode code = exit_code_of_signal(signal);
  if (!writes()) return code;
  const auto file = run_.write_checkpoint();
  if (!interruption_->lost().empty()) {
    warn(fmt::format("cannot write the output: {}; {}", interruption_->lost(), to_go_on()));
    return ExitCode::output_lost;
  }
  warn(fmt::format("stopped by a signal{} after {} steps; the checkpoint is {}\n{}",
                   signal == 0 ? " to another host"
                   : is_copy_  ? ", alone,"
                               : "",
                   run_.trainer().result().steps, file.string(), to_go_on()));
  return code;
}

ExitCode TerminalRun::finished(const RunOutcome& outcome) {
  if (!writes()) return exit_code_of(outcome);
  const std::string folder = run_.location().path().string();
  if (outcome.end == RunOutcome::End::diverged) {
    warn(fmt::format("{}\ntry a lower --lr or another --rule\nmetrics are kept in {}",
                     outcome.reason, folder));
    return exit_code_of(outcome);
  }
  const RunSummary& summary = *outcome.summary;
  for (const std::string& line : planned_faults_->missed(summary.result.steps)) warn(line);
  if (!arguments_.quiet) print_text(closing(summary, run_));
  if (const std::string lost = interruption_->lost(); !lost.empty()) {
    warn(fmt::format("cannot write the output: {}; the run is complete, in {}", lost, folder));
    return ExitCode::output_lost;
  }
  if (outcome.end == RunOutcome::End::out_of_devices) {
    warn(
        "the availability has no devices for the rest of the training; a longer one, or "
        "--on-trace-end hold or cycle, has them");
  }
  if (const auto missed = missed_target(arguments_.run, summary.result)) warn(*missed);
  return exit_code_of(outcome);
}

ExitCode TerminalRun::exit_code_of(const RunOutcome& outcome) const {
  if (outcome.end == RunOutcome::End::diverged) return ExitCode::diverged;
  if (outcome.end == RunOutcome::End::out_of_devices) return ExitCode::out_of_devices;
  return missed_target(arguments_.run, outcome.summary->result) ? ExitCode::target_missed
                                                                : ExitCode::good;
}

std::string TerminalRun::to_go_on() const {
  return fmt::format(
      "{} rubato train --resume {}",
      is_copy_ ? "others may go on with the run; to go on from this copy of it:" : "to go on:",
      run_.location().path().string());
}

std::string TerminalRun::what_is_left() {
  return writes() ? way_out_of_step(run_, to_go_on()) : "";
}

}  // namespace rubato::app
