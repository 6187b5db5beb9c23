// TerminalRun is the owner of a Session at a terminal (docs/adr/0057-sessions.md): the session
// trains and writes the folder, and this file words the messages and turns signals and ends of runs
// into exit codes. It is used by two threads: the training thread asks wants_to_stop() and the like
// between steps, and the listener's thread runs on_signal(), which saves the state before the
// current step while that step still computes. Only the host that writes the run reports how it has
// ended. When stdout is lost, a run stops as after a signal; an elastic host leaves instead, so
// that the others continue.

#include "terminal_run.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/core/seconds.hpp"
#include "base/core/text/text.hpp"
#include "clients/app/line/number_text.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/signals.hpp"
#include "loop/train/step/step_part.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/report/progress.hpp"
#include "runs/run/run_request.hpp"

namespace rubato::app {

namespace {

// Returns how much was trained: "3 epochs", "5 of 48 steps of epoch 1", "1 epoch and 5 of 48 steps
// of epoch 2".
std::string epochs_of(const TrainResult& result) {
  std::string whole = fmt::format("{} epoch{}", result.epochs, result.epochs == 1 ? "" : "s");
  if (!result.part) return whole;
  const std::string part = fmt::format("{} of {} steps of epoch {}", result.part->steps,
                                       result.part->of_steps, result.epochs + 1);
  return result.epochs == 0 ? part : fmt::format("{} and {}", whole, part);
}

// Returns a line such as "modelled time 2:13:05, 41.2 core-hours, 12.36 of money, idle 10:00, lost
// 31 s, restarting 1:00, 2 restarts".
std::string clock_words(const ClockTime& time) {
  std::string text = fmt::format("modelled time {}, {:.4g} core-hours", modelled_time(time.seconds),
                                 time.core_seconds / kSecondsOfHour);
  if (time.money > 0) text += fmt::format(", {:.4g} of money", time.money);
  const std::pair<std::string_view, double> parts[] = {
      {"idle", time.idle_seconds},          {"lost", time.lost_seconds},
      {"restarting", time.restart_seconds}, {"joining", time.join_seconds},
      {"redoing", time.redone_seconds},     {"saving", time.checkpoint_seconds}};
  for (const auto& [what, seconds] : parts) {
    if (seconds > 0) text += fmt::format(", {} {}", what, modelled_time(seconds));
  }
  if (time.restarts > 0) {
    text += fmt::format(", {} restart{}", time.restarts, time.restarts == 1 ? "" : "s");
  }
  return text + "\n";
}

// Returns the engine and kernels that computed the weights, and the hash of the weights.
std::string origin_of(const RunSummary& summary) {
  std::string text = fmt::format("computed by {}", summary.engine.engine);
  if (!summary.engine.kernels.empty()) {
    text += fmt::format(", kernels {}", kernels_text(summary.engine.kernels));
  }
  return text + fmt::format(", with {} gradient buffers\nweights have SHA-256 {}\n",
                            summary.gradient_buffers, summary.weights_sha256);
}

}  // namespace

std::string opening(const RunConfiguration& run, const Workload& workload, const RunSteps& steps) {
  const CoreRange range = cores_of(steps, run);
  const std::string cores = range.fewest == range.most
                                ? fmt::to_string(range.most)
                                : fmt::format("{} to {}", range.fewest, range.most);
  const std::string scaling = scaling_of(steps, run);
  std::string notes;
  for (const std::string& note : reading_notes(run)) notes += note + '\n';
  return fmt::format(
      "{}, trace {}{}{}\n{}"
      "rule {}, lr {} at batch {}, {}, minibatch {}, {} cores on {} threads, seed {}\n",
      workload.description(), source_of(steps),
      scaling.empty() ? "" : fmt::format(" ({})", scaling),
      run.clock == Clock::real ? "" : ", modelled time", notes, run.rule.text(), run.learning_rate,
      run.reference_batch, run.optimizer.text(), run.minibatch, cores, run.threads, run.seed);
}

std::string resumption(const TrainResult& result,
                       const std::optional<CheckpointFolder::Found>& from,
                       const std::optional<std::filesystem::path>& kept_in) {
  if (!from) return "there is no checkpoint yet: the run starts over\n";
  std::string text = fmt::format("continuing after step {} ({} epochs are complete), from {}\n",
                                 result.steps, result.epochs, from->file.string());
  if (kept_in) {
    text += fmt::format(
        "the steps after step {} are kept in {}, a run of its own that --resume can continue, "
        "too\n",
        result.steps, kept_in->string());
  }
  return text;
}

std::string closing(const RunSummary& summary, const Run& run, bool verbose) {
  const TrainResult& result = summary.result;
  std::string text;
  if (!result.stopped.empty()) text += fmt::format("stopped: {}\n", result.stopped);
  text += fmt::format("trained {}: {} steps, {} samples in {} ({} samples/s)\n", epochs_of(result),
                      result.steps, result.samples, clock_time(summary.wall_seconds),
                      short_number(static_cast<double>(result.samples) / result.train_seconds));
  if (result.time) text += clock_words(*result.time);
  if (result.final_test && result.final_test->accuracy) {
    text += fmt::format("test accuracy {:.2f} %, best {:.2f} %\n",
                        *result.final_test->accuracy * 100, *result.best_test_accuracy * 100);
  } else if (result.final_test) {
    text += fmt::format("test loss {:.6g}\n", result.final_test->loss);
  }
  for (const OtherWeightsInfo& weights : other_weights()) {
    const auto found = result.final_other_tests.find(weights.name);
    if (found == result.final_other_tests.end() || !found->second) continue;
    const Evaluation& test = *found->second;
    text += fmt::format("{}, in {}.{}: {}\n", weights.words, weights.name,
                        run.workload().weights_suffix(),
                        test.accuracy ? fmt::format("test accuracy {:.2f} %", *test.accuracy * 100)
                                      : fmt::format("test loss {:.6g}", test.loss));
  }
  if (const BestWeights* const best = run.best(); best != nullptr && best->value()) {
    text += fmt::format("best weights are those of epoch {}, in best.{}\n",
                        best->epoch().value() + 1, run.workload().weights_suffix());
  }
  if (verbose) text += origin_of(summary);
  return text + fmt::format("run folder {}\n", run.location().path().string());
}

std::string kernel_words() {
  const auto start = kernel_start();
  return start ? describe(*start) + "\n" : std::string();
}

namespace {

// It begins a line, as the terminal has printed ^C or a bar.
constexpr std::string_view kFinishing =
    "\nrubato train: finishing the step, and saving the state; repeat after a second to end at "
    "once\n";

// Returns a line such as "3 hosts of weights 2, 1, 1"; with a timeline, a second line says whose it
// is.
std::string words_of(const Hosts& hosts, bool has_timeline) {
  const std::vector<double> weights = hosts.weights();
  const bool equal =
      std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to()) == weights.end();
  return fmt::format(
      "{} hosts{}\n{}", hosts.count(),
      equal ? "" : fmt::format(" of weights {}", fmt::join(weights, ", ")),
      has_timeline
          ? fmt::format("the timeline has the threads of this host alone, host {}\n", hosts.rank())
          : "");
}

// Elastic hosts print messages to the terminal, which would disturb a view.
ProgressStyle style_of(const TrainArguments& arguments) {
  if (arguments.verbose || !can_redraw(STDOUT_FILENO)) return ProgressStyle::lines;
  const bool viewed = wants_colours() && !arguments.hosts.several();
  return viewed ? ProgressStyle::view : ProgressStyle::bar;
}

std::optional<ProgressOut> progress_of(const TrainArguments& arguments, const StopSignals& signals,
                                       std::mutex& drawing) {
  if (arguments.quiet) return std::nullopt;
  ProgressOut out = progress_on(stdout, style_of(arguments));
  out.verbose = arguments.verbose;
  out.disturbances = [&signals] { return signals.disturbances(); };
  out.drawing = &drawing;
  return out;
}

ExitCode exit_code_of(RunEnd end) {
  switch (end) {
    case RunEnd::target_missed:
      return ExitCode::target_missed;
    case RunEnd::out_of_devices:
      return ExitCode::out_of_devices;
    case RunEnd::diverged:
      return ExitCode::diverged;
    default:
      return ExitCode::good;
  }
}

}  // namespace

void warn(const std::string& text) {
  print_error(fmt::format("rubato train: {}\n", text));
}

TerminalRun::TerminalRun(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
                         RunLocation location, std::shared_ptr<Hosts> hosts, RunRole role,
                         const StopSignals& signals)
    : arguments_(arguments),
      signals_(signals),
      hosts_(hosts),
      role_(role),
      goes_on_(location.is_resumed()),
      session_(arguments,
               {.workload = std::move(workload),
                .location = std::move(location),
                .hosts = std::move(hosts),
                .follows = !writes(),
                .progress = progress_of(arguments, signals, drawing_)},
               *this) {
  if (role == RunRole::first && !arguments.quiet) show();
  try {
    listener_.emplace([this] { on_signal(); });
  } catch (const std::system_error&) {
    // Without the thread, signals are noticed between steps.
  }
}

void TerminalRun::show() const {
  print_text(opening(arguments_.run, run().workload(), run().steps()));
  if (const auto scaled = scaled_rate(arguments_, run().steps())) print_text(*scaled + "\n");
  print_text(kernel_words());
  if (hosts_) print_text(words_of(*hosts_, !arguments_.run.timeline.empty()));
  if (const std::string& note = run().location().note(); !note.empty()) {
    print_text(fmt::format("a fork of {}\n", note));
  }
  if (!goes_on_) return;
  print_text(resumption(run().trainer().result(), run().location().from(), run().kept_in()));
}

void TerminalRun::on_signal() noexcept {
  const SignalAction action = signals_.action();
  if (hosts_ && action == SignalAction::stop) hosts_->ask_to_pause();
  if (hosts_ && action == SignalAction::leave) hosts_->ask_to_leave();
  // Followers pass the request on between steps to the host that writes.
  if (!writes()) return;
  try {
    confirm(action);
    const std::optional<std::int64_t> steps = session_.save_in_step();
    if (!steps || !signals_.take_checkpoint_request() || arguments_.quiet) return;
    report(*steps == 0 ? "no checkpoint: it is the first step"
                       : fmt::format("a checkpoint of {} steps is written", *steps));
  } catch (const std::exception& error) {
    // The run itself will report what is wrong with its folder when it next writes to it.
    if (signals_.take_checkpoint_request()) report(fmt::format("no checkpoint: {}", error.what()));
  }
}

void TerminalRun::confirm(SignalAction action) {
  const std::lock_guard lock(drawing_);
  if (!writes() || action <= confirmed_) return;
  confirmed_ = action;
  print_error(kFinishing);
  signals_.disturb();
}

void TerminalRun::report(const std::string& text) {
  const std::lock_guard lock(drawing_);
  app::warn(text);
  signals_.disturb();
}

bool TerminalRun::is_hung_up() const {
  return signals_.received() == SIGHUP;
}

bool TerminalRun::wants_to_leave() {
  if (signals_.action() != SignalAction::leave) return false;
  confirm(SignalAction::leave);
  return true;
}

bool TerminalRun::wants_to_stop() {
  if (const SignalAction action = signals_.action(); action >= SignalAction::stop) {
    confirm(action);
    return true;
  }
  const std::string why = lost();
  if (!why.empty() && hosts_ && hosts_->elastic()) {
    has_left_ = true;
    is_copy_ = hosts_->count() > 1;
    throw Interrupted(why);
  }
  return !why.empty();
}

std::string TerminalRun::to_go_on(const Run& run) const {
  return fmt::format(
      "{} rubato train --resume {}",
      is_copy_ ? "others may continue the run; to continue from this copy of it:" : "to continue:",
      shell_quoted(run.location().path().string()));
}

std::string TerminalRun::lost() const {
  const int error = session_.progress_error();
  return error == 0 ? lost_output() : std::generic_category().message(error);
}

bool TerminalRun::execute() {
  const SessionOutcome outcome = session_.execute();
  if (outcome.must_regroup && !has_left_) return false;
  if (outcome.must_regroup) {
    stop();
  } else {
    code_ = outcome.end == RunEnd::paused ? stopped(outcome) : report_end(outcome);
  }
  return true;
}

void TerminalRun::stop() {
  code_ = stopped(session_.stop());
}

ExitCode TerminalRun::stopped(const SessionOutcome& outcome) const {
  const int signal = signals_.received();
  const ExitCode code = exit_code_of_signal(signal);
  if (!writes()) return code;
  if (const std::string why = lost(); !why.empty() && !is_hung_up()) {
    app::warn(fmt::format("cannot write the output: {}; {}", why, to_go_on(run())));
    return ExitCode::output_lost;
  }
  app::warn(fmt::format("stopped by a signal{} after {} steps; {}\n{}",
                        signal == 0 ? " to another host"
                        : is_copy_  ? ", alone,"
                                    : "",
                        run().trainer().result().steps,
                        outcome.checkpoint
                            ? fmt::format("the checkpoint is {}", outcome.checkpoint->string())
                            : "without a checkpoint",
                        to_go_on(run())));
  return code;
}

ExitCode TerminalRun::report_end(const SessionOutcome& outcome) {
  const ExitCode code = exit_code_of(outcome.end);
  if (!writes()) return code;
  const std::string folder = run().location().path().string();
  if (outcome.end == RunEnd::diverged) {
    app::warn(fmt::format("{}\nmetrics are kept in {}", outcome.reason, folder));
    return code;
  }
  if (!arguments_.quiet) {
    print_text(closing(*outcome.summary, run(), arguments_.verbose));
  }
  if (const std::string why = lost(); !why.empty()) {
    app::warn(fmt::format("cannot write the output: {}; the run is complete, in {}", why, folder));
    return ExitCode::output_lost;
  }
  if (!outcome.reason.empty()) app::warn(outcome.reason);
  return code;
}

}  // namespace rubato::app
