#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/loop/hosts.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/runs/run.hpp>

#include "run_request.hpp"
#include "runs/report/progress.hpp"

namespace rubato {

/// Watches which of the planned faults happen, so that the user can be told of those that do not.
class PlannedFaults final : public Observer {
 public:
  /// Training continues with step `first`: faults of earlier steps are not expected.
  PlannedFaults(std::vector<Fault> planned, StepIndex first);

  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  void on_step(Training& training, const StepRecord& step) override;

  /// A line for each fault that did not happen in a training that has ended after `steps`.
  [[nodiscard]] std::vector<std::string> missed(std::int64_t steps) const;

 private:
  std::vector<Fault> awaited_;
  // Faults whose cores had no substep in their steps.
  std::vector<Fault> idle_;
};

/// The party that wants a run to be trained: the program at a terminal, or a call from Python.
class SessionOwner {
 public:
  SessionOwner() = default;
  SessionOwner(const SessionOwner&) = delete;
  SessionOwner& operator=(const SessionOwner&) = delete;
  virtual ~SessionOwner() = default;

  /// Tells the user something they should know: one line or more, without a line break at the end.
  virtual void warn(const std::string& text) = 0;
  /// Whether the run is to end here. Called between steps, on the thread that trains.
  [[nodiscard]] virtual bool wants_to_stop() = 0;
  /// Whether this host is to leave while the others continue (Hosts::ask_to_leave()). Called
  /// likewise, if hosts come and go.
  [[nodiscard]] virtual bool wants_to_leave() { return false; }
  /// Whether the host that writes the run is to write a checkpoint now. Called likewise; each
  /// request is answered once.
  [[nodiscard]] virtual bool takes_checkpoint_request() { return false; }
  /// Says how to continue the run, which has a folder: "to go on: rubato train --resume
  /// runs/first".
  [[nodiscard]] virtual std::string to_go_on(const Run& run) const = 0;
};

/// Thrown in a step by a part of the session's owner that cannot continue: the session then stops
/// as if the owner had wanted it before the step.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// The result of a session.
struct SessionOutcome {
  /// Paused if the owner has ended it, or if it is to regroup.
  RunEnd end = RunEnd::completed;
  /// True if the hosts must form a new group first (Hosts::regroup_due()); execute() then
  /// continues.
  bool must_regroup = false;
  /// The reason to tell the user; empty if it is completed, stopped or paused.
  std::string reason{};
  /// Set unless it is paused.
  std::optional<RunSummary> summary{};
  /// The checkpoint of a session that its owner has ended; empty if it writes no folder, or has no
  /// state.
  std::optional<std::filesystem::path> checkpoint{};
};

/// The parts of a session besides the user's request.
struct SessionParts {
  std::shared_ptr<const Workload> workload;
  /// The location_of() the request.
  RunLocation location{};
  /// The processes that train together; null for this one alone.
  std::shared_ptr<Hosts> hosts{};
  /// Whether it computes together with a host that writes the run folder and informs the user.
  bool follows = false;
  /// Steps that replace those of the configuration's trace.
  std::optional<Run::Steps> steps{};
  /// The output for progress; empty if it is not shown.
  std::optional<ProgressOut> progress{};
};

/// A run from its beginning, or from the state that it continues from, to its end, for any owner:
/// its folder, what ends it early, its progress, warnings to the user, and the checkpoint at the
/// end.
class Session {
 public:
  /// `request` and `owner` must outlive it; the owner receives warnings about the request. Throws
  /// what Run's constructor throws, and Error for anything else that a plug-in throws.
  Session(const RunRequest& request, SessionParts parts, SessionOwner& owner);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Trains to the end, or until the owner wants to stop. Throws what Run::execute() throws. If
  /// output, memory or a host was lost, or the model or a user's part threw, it first writes a
  /// checkpoint of the step before, if possible, and the message says what is left of the run and
  /// how to continue it. An exception of a part becomes an Error that names the part, its plug-in
  /// and the step.
  SessionOutcome execute();
  /// Ends it between two steps, with a checkpoint if it writes its folder. Throws OutputError.
  SessionOutcome stop();
  /// For another thread while execute() runs: Run::write_checkpoint_in_step(), if the session
  /// writes its folder.
  std::optional<std::int64_t> save_in_step();
  /// Throws as execute() does when a host is lost.
  [[noreturn]] void throw_lost(const HostLost& lost);

  /// The error (errno) that kept progress from being shown; 0 if there was none.
  [[nodiscard]] int progress_error() const { return progress_ ? progress_->error() : 0; }
  [[nodiscard]] Run& run() { return run_; }
  [[nodiscard]] const Run& run() const { return run_; }

 private:
  class Interruption;
  class WatchedTests;

  void show(const ProgressOut& out);
  SessionOutcome ended(const RunOutcome& outcome);
  void finish_progress();
  // To be called in a handler of an exception from training: rethrows it with the user's part that
  // threw, if it was one, and with what is left of the run.
  [[noreturn]] void throw_with_rest();
  // Text that says what is left of a run that an exception has ended. It begins with a line break,
  // as it follows the message; empty for a run without a folder.
  [[nodiscard]] std::string left_without_output();
  [[nodiscard]] std::string left_of_step();
  // The same, but empty before the second step.
  [[nodiscard]] std::string left_of_steps();
  // The part that threw in fit(), and where: "rule log2 (of --plugin mine.so) at epoch 1, step 5 of
  // the run: "; empty if it was none of the user's parts.
  [[nodiscard]] std::string thrower() const;
  [[nodiscard]] bool is_kept() const;
  [[nodiscard]] bool has_checkpoint() const;

  const RunRequest& request_;
  SessionOwner& owner_;
  bool follows_;
  std::shared_ptr<Hosts> hosts_;
  Run run_;
  // Null if the session follows another host.
  std::shared_ptr<PlannedFaults> planned_faults_;
  // Null if progress is not shown.
  std::shared_ptr<Progress> progress_;
};

}  // namespace rubato
