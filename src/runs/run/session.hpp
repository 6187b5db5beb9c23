#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <rubato/loop/hosts.hpp>
#include <rubato/runs/run.hpp>

#include "run_request.hpp"
#include "runs/report/progress.hpp"

namespace rubato {

class PlannedFaults;

/// Whoever wants a run to be trained: the program at a terminal, a call of Python's.
class SessionOwner {
 public:
  SessionOwner() = default;
  SessionOwner(const SessionOwner&) = delete;
  SessionOwner& operator=(const SessionOwner&) = delete;
  virtual ~SessionOwner() = default;

  /// Tells the user something they should know: one line or more, without a line break at the end.
  virtual void warn(const std::string& text) = 0;
  /// Asked between steps, on the thread that trains: whether the run is to end here.
  [[nodiscard]] virtual bool wants_to_stop() = 0;
  /// Asked likewise, of hosts that come and go: whether this one is to go, and the others on
  /// (Hosts::ask_to_leave()).
  [[nodiscard]] virtual bool wants_to_leave() { return false; }
  /// Asked likewise: whether there is to be a checkpoint now, of whoever writes the run. Each
  /// request is answered once.
  [[nodiscard]] virtual bool takes_checkpoint_request() { return false; }
  /// How to go on with the run, which has a folder: "to go on: rubato train --resume runs/first".
  [[nodiscard]] virtual std::string to_go_on(const Run& run) const = 0;
};

/// Thrown in a step by what belongs to the session's owner and cannot go on: the session then stops
/// as if the owner had wanted it before the step.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// What a session came to.
struct SessionOutcome {
  enum class End {
    completed,
    /// As completed, but --target-accuracy was missed.
    target_missed,
    /// There were no devices for the rest of the run any more.
    out_of_devices,
    /// The loss or the gradient became infinite or NaN.
    diverged,
    /// Its owner has ended it; a resume goes on to the same bits.
    stopped,
    /// The hosts have to form a new group first (Hosts::regroup_due()); execute() then goes on.
    regroup,
  };
  End end = End::completed;
  /// What the user should know of that end; empty where it is completed, stopped or to regroup.
  std::string reason{};
  /// Where it has come to its end: not where it is stopped or to regroup.
  std::optional<RunSummary> summary{};
  /// Of a session that was stopped; empty where it writes no folder, or has no state.
  std::optional<std::filesystem::path> checkpoint{};
};

/// What a session is made of, besides what the user asks for.
struct SessionParts {
  std::shared_ptr<const Workload> workload;
  /// location_of() the request.
  RunLocation location{};
  /// The processes that train together; null is this one alone.
  std::shared_ptr<Hosts> hosts{};
  /// Whether it computes along with a host that writes the run folder and tells the user.
  bool follows = false;
  /// In place of what the configuration's trace names.
  std::optional<Run::Steps> steps{};
  /// Where it is shown how training goes on, if anywhere.
  std::optional<ProgressOut> progress{};
};

/// A run from its beginning, or from where it goes on, to its end, whoever wants it: its folder,
/// what ends it early, what is shown of it, what the user is told, and the checkpoint on the way
/// out.
class Session {
 public:
  /// `request` and `owner` outlive it; the owner is told what is odd about the request. Throws what
  /// Run's constructor does, and Error for whatever else a plug-in throws.
  Session(const RunRequest& request, SessionParts parts, SessionOwner& owner);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Trains to the end, or until the owner wants to stop. Throws what Run::execute() does; where
  /// output, memory or a host was lost, or the model or a part of a user's threw, with what is left
  /// of the run and how to go on with it, after a checkpoint of the step before where there can be
  /// one. What a part threw becomes an Error that names the part, its plug-in and the step.
  SessionOutcome execute();
  /// Ends it between two steps, with a checkpoint where it writes its folder. Throws OutputError.
  SessionOutcome stop();
  /// For another thread while execute() runs: Run::write_checkpoint_in_step(), where the session
  /// writes its folder.
  std::optional<std::int64_t> save_in_step();
  /// What execute() throws when a host is lost.
  [[noreturn]] void throw_lost(const HostLost& lost);

  /// Why progress could not be shown (errno); 0 where it could.
  [[nodiscard]] int progress_error() const { return progress_ ? progress_->error() : 0; }
  [[nodiscard]] Run& run() { return run_; }
  [[nodiscard]] const Run& run() const { return run_; }

 private:
  class Interruption;

  void show(const ProgressOut& out);
  SessionOutcome ended(const RunOutcome& outcome);
  void finish_progress();
  // To be called in a handler of what training threw: rethrows it with the part that threw, where
  // it is a user's, and with what is left of the run.
  [[noreturn]] void throw_with_rest();
  // What is left of a run that an exception has ended, as a line that begins with a line break,
  // behind what went wrong; empty for a run that is kept nowhere.
  [[nodiscard]] std::string left_without_output();
  [[nodiscard]] std::string left_of_step();
  // The same, but nothing before the second step.
  [[nodiscard]] std::string left_of_steps();
  // Who has thrown in fit(), and where: "rule log2 (of --plugin mine.so) at epoch 1, step 5 of the
  // run: "; empty where it was none of the parts that users plug in.
  [[nodiscard]] std::string thrower() const;
  [[nodiscard]] bool is_kept() const;
  [[nodiscard]] bool has_checkpoint() const;

  const RunRequest& request_;
  SessionOwner& owner_;
  bool follows_;
  std::shared_ptr<Hosts> hosts_;
  Run run_;
  // Null where it follows.
  std::shared_ptr<PlannedFaults> planned_faults_;
  // Null where nothing is shown.
  std::shared_ptr<Progress> progress_;
};

}  // namespace rubato
