#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <rubato/run/run.hpp>
#include <rubato/runtime/hosts.hpp>

#include "app/exit_code.hpp"
#include "app/train_arguments.hpp"

namespace rubato {
class Progress;
}

namespace rubato::app {

class PlannedFaults;
class StopSignals;

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

/// A run as a user at a terminal has it: what is shown of it, what stops it, and what it answers.
class TerminalRun {
 public:
  /// `arguments` and `signals` outlive it; `hosts` may be null. Throws what Run's constructor does.
  TerminalRun(const TrainArguments& arguments, std::shared_ptr<const Workload> workload,
              RunLocation location, const std::shared_ptr<Hosts>& hosts, RunRole role,
              StopSignals& signals);
  ~TerminalRun();
  TerminalRun(const TerminalRun&) = delete;
  TerminalRun& operator=(const TerminalRun&) = delete;

  /// Trains to the end, or until a signal has come, and says so. Empty where the hosts have to form
  /// a new group first (Hosts::regroup_due()); it may then be called again. Throws what
  /// Run::execute() does, with what the user can do then.
  std::optional<ExitCode> execute();

  /// What execute() throws when a host is lost: with a checkpoint of what has been trained.
  [[noreturn]] void throw_lost(const HostLost& lost);

  /// Others may go on with the run: what this one says from now on is of a copy of it.
  void become_copy() { is_copy_ = true; }

  /// Ends it before its end, with a checkpoint where it writes its folder, and says so.
  ExitCode stop();
  [[nodiscard]] Run& run() { return run_; }
  [[nodiscard]] const Run& run() const { return run_; }
  [[nodiscard]] RunRole role() const { return role_; }

 private:
  class Interruption;

  void show();
  ExitCode finished(const RunOutcome& outcome);
  [[nodiscard]] ExitCode exit_code_of(const RunOutcome& outcome) const;
  [[nodiscard]] std::string to_go_on() const;
  // After a step that has failed.
  [[nodiscard]] std::string what_is_left();
  [[nodiscard]] bool writes() const { return role_ != RunRole::follower; }

  const TrainArguments& arguments_;
  RunRole role_;
  bool is_copy_ = false;
  const StopSignals& signals_;
  std::shared_ptr<Hosts> hosts_;
  Run run_;
  std::shared_ptr<PlannedFaults> planned_faults_;
  std::shared_ptr<Progress> progress_;
  std::shared_ptr<Interruption> interruption_;
};

}  // namespace rubato::app
