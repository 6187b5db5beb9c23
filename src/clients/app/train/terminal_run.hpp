#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <rubato/loop/hosts.hpp>
#include <rubato/runs/records.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_folder.hpp>

#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/signals.hpp"
#include "hosts/elastic/host_driver.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/session.hpp"
#include "train_arguments.hpp"

namespace rubato::app {

// The messages of `rubato train`, except its progress. Epochs and steps count from 1 here, as
// everywhere that people read or type them; files count from 0.

/// Says what will be trained.
[[nodiscard]] std::string opening(const RunConfiguration& run, const Workload& workload,
                                  const RunSteps& steps);
/// Says where a run that has trained `result` continues: from a checkpoint, or from its beginning.
[[nodiscard]] std::string resumption(const TrainResult& result,
                                     const std::optional<CheckpointFolder::Found>& from,
                                     const std::optional<std::filesystem::path>& kept_in);
/// Says what was trained; with `verbose`, also what the summary has about how.
[[nodiscard]] std::string closing(const RunSummary& summary, const Run& run, bool verbose);

/// Says which kernels were chosen for the libraries; empty if they chose by themselves.
[[nodiscard]] std::string kernel_words();

/// Prints a line to stderr that begins with the name of the command.
void warn(const std::string& text);

/// A session at a terminal: signals end it (docs/runs.md), stdout shows its progress, stderr its
/// warnings, and its result is an exit code.
class TerminalRun final : public HostSession, private SessionOwner {
 public:
  /// `arguments` and `signals` must outlive this object; `hosts` may be null. Throws as Session's
  /// constructor does.
  TerminalRun(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
              RunLocation location, std::shared_ptr<Hosts> hosts, RunRole role,
              const StopSignals& signals);

  /// Trains to the end or until a signal, and reports the result.
  [[nodiscard]] bool execute() override;
  /// Ends the run early, and says so.
  void stop() override;
  [[noreturn]] void throw_lost(const HostLost& lost) override { session_.throw_lost(lost); }
  /// True if nobody reads the output of this host any more; elastic hosts do not stop for that.
  [[nodiscard]] bool has_left() const override { return has_left_; }
  void become_copy() override { is_copy_ = true; }
  [[nodiscard]] std::string how_to_go_on() const override { return to_go_on(run()); }
  [[nodiscard]] Run& run() override { return session_.run(); }
  [[nodiscard]] const Run& run() const { return session_.run(); }

  /// The exit code once the run has ended here.
  [[nodiscard]] std::optional<ExitCode> code() const { return code_; }

 private:
  void warn(const std::string& text) override { app::warn(text); }
  [[nodiscard]] bool wants_to_stop() override;
  [[nodiscard]] bool wants_to_leave() override;
  [[nodiscard]] bool takes_checkpoint_request() override {
    return signals_.take_checkpoint_request();
  }
  [[nodiscard]] std::string to_go_on(const Run& run) const override;

  void show() const;
  // Called on the listener's thread after a signal. It tells the other hosts within this step, says
  // what happens now, and saves the state before the step, however long the step takes.
  void on_signal() noexcept;
  // Says once that a signal is heeded. Both threads call this, as either may notice it first.
  void confirm(SignalAction action);
  // Prints like warn(), but so that the progress does not draw over it.
  void report(const std::string& text);
  // Returns whether the terminal is gone (SIGHUP), so that nothing more can be printed.
  [[nodiscard]] bool is_hung_up() const;
  ExitCode report_end(const SessionOutcome& outcome);
  ExitCode stopped(const SessionOutcome& outcome) const;
  // Returns why something could not be printed; empty if everything could.
  [[nodiscard]] std::string lost() const;
  [[nodiscard]] bool writes() const { return role_ != RunRole::follower; }

  const TrainArguments& arguments_;
  const StopSignals& signals_;
  std::shared_ptr<Hosts> hosts_;
  RunRole role_;
  // True if the folder already had a run.
  bool goes_on_;
  bool is_copy_ = false;
  bool has_left_ = false;
  std::optional<ExitCode> code_;
  // ProgressOut::drawing; it also guards the most that has been confirmed.
  std::mutex drawing_;
  SignalAction confirmed_ = SignalAction::checkpoint;
  Session session_;
  // The listener must be the last member, as its thread uses all of the above. Empty if the system
  // has no more threads.
  std::optional<SignalListener> listener_;
};

}  // namespace rubato::app
