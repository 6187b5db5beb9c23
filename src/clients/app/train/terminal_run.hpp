#pragma once

#include <memory>
#include <optional>
#include <string>

#include <rubato/loop/hosts.hpp>
#include <rubato/runs/run.hpp>

#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/stop_signals.hpp"
#include "runs/run/session.hpp"
#include "train_arguments.hpp"

namespace rubato::app {

/// A line on stderr, signed by the command.
void warn(const std::string& text);

/// What a process is to a run.
enum class RunRole {
  /// It begins the run, or goes on with what has ended: it shows the run and writes its folder.
  first,
  /// It does so from now on, in place of a host that is lost.
  successor,
  /// It computes along with another one that does.
  follower,
};

/// A session at a terminal: signals end it (docs/runs.md), stdout shows it, stderr says what is
/// odd, and it answers with an exit code.
class TerminalRun final : private SessionOwner {
 public:
  /// `arguments` and `signals` outlive it; `hosts` may be null. Throws what Session's constructor
  /// does.
  TerminalRun(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
              RunLocation location, std::shared_ptr<Hosts> hosts, RunRole role,
              StopSignals& signals);

  /// Trains to the end, or until a signal has come, and says so. Empty where the hosts have to form
  /// a new group first (Hosts::regroup_due()); it may then be called again. Throws what
  /// Session::execute() does.
  std::optional<ExitCode> execute();
  /// Ends it before its end, and says so.
  ExitCode stop();
  [[noreturn]] void throw_lost(const HostLost& lost) { session_.throw_lost(lost); }

  /// Returns whether this host alone has ended because nobody reads its output any more; elastic
  /// hosts do not stop for that.
  [[nodiscard]] bool has_left() const { return has_left_; }

  /// Others may go on with the run: what this one says from now on is of a copy of it.
  void become_copy() { is_copy_ = true; }

  [[nodiscard]] Run& run() { return session_.run(); }
  [[nodiscard]] const Run& run() const { return session_.run(); }
  [[nodiscard]] RunRole role() const { return role_; }

 private:
  void warn(const std::string& text) override { app::warn(text); }
  [[nodiscard]] bool wants_to_stop() override;
  [[nodiscard]] bool wants_to_leave() override { return signals_.action() == SignalAction::leave; }
  [[nodiscard]] bool takes_checkpoint_request() override {
    return signals_.take_checkpoint_request();
  }
  [[nodiscard]] std::string to_go_on(const Run& run) const override;

  void show() const;
  // On the listener's thread, when a signal has come: the other hosts hear of it in this step, and
  // the state before the step is saved, however long it takes.
  void hear_signal() noexcept;
  // After SIGHUP the terminal is gone, and nothing more can be printed.
  [[nodiscard]] bool is_hung_up() const;
  ExitCode told(const SessionOutcome& outcome);
  ExitCode stopped(const SessionOutcome& outcome) const;
  // Why something could not be printed; empty where all could.
  [[nodiscard]] std::string lost() const;
  [[nodiscard]] bool writes() const { return role_ != RunRole::follower; }

  const TrainArguments& arguments_;
  const StopSignals& signals_;
  std::shared_ptr<Hosts> hosts_;
  RunRole role_;
  // This is true if the folder already had a run.
  bool goes_on_;
  bool is_copy_ = false;
  bool has_left_ = false;
  Session session_;
  // Last: its thread uses all of the above. Empty where the system has no more threads.
  std::optional<SignalListener> listener_;
};

}  // namespace rubato::app
