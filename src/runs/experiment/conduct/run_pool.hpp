#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/process.hpp"
#include "worker.hpp"

namespace rubato {

/// The way in which a child process ended.
struct ChildEnd {
  /// Exit code; -1 if a signal ended it.
  int code = -1;
  /// Number of the signal that ended it; 0 if it exited.
  int signal = 0;
};

/// "killed by signal 9 (Killed)", or "ended with code 2".
[[nodiscard]] std::string in_words(const ChildEnd& end);

/// A program that this process has started, in a process group of its own, so that Ctrl-C in the
/// terminal reaches this process only. Its stdout is /dev/null, and it is killed when the thread
/// that started it ends.
class ChildProcess {
 public:
  /// Starts the file `program` with `arguments`, the first of which is its name. Its stderr goes to
  /// the file `errors`, its stdin is `input` (-1 for /dev/null), and the descriptor `inherited` (-1
  /// for none) stays open in it. Throws Error if no further process can be created; a program that
  /// cannot be started ends with kCannotStart.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& errors, int inherited, int input = -1);
  /// Owns a child that a ForkServer has forked for this process.
  explicit ChildProcess(pid_t process) : process_(process) {}
  /// Kills the process unless it has ended.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Whether the process has ended; if so, sets `end`. Does not wait.
  [[nodiscard]] bool has_ended(ChildEnd& end);
  /// Asks it to terminate (SIGTERM).
  void terminate() const;

 private:
  pid_t process_ = -1;
};

/// Lets a thread wait for the end of any child process: SIGCHLD is blocked while this object lives.
class ChildWatch {
 public:
  ChildWatch();
  ~ChildWatch();
  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;

  /// Returns when a child has ended since the last call, when a signal has arrived, or after
  /// `milliseconds` (below 1000).
  void wait(int milliseconds) const;
};

/// The first steps of a task, if another one trains them.
struct PrefixOfTask {
  /// The run that trains them, and their number, after which it has a checkpoint.
  RunFiles run;
  std::int64_t steps = 0;
  /// The folder to which they are copied, as the folder of that run moves when it ends.
  std::filesystem::path shared;
  /// The configuration of the task as a fork of `shared`.
  std::filesystem::path config;
};

/// A run to be executed until it ends.
struct RunTask {
  std::string name;
  RunFiles files;
  std::int64_t threads = 1;
  /// workload_text() of the run. Several tasks with the same text are forked from a process that
  /// has loaded their workload, if it is not empty.
  std::string workload{};
  /// The task waits until the other one has trained these steps, and goes on from there; if that
  /// one ends without the checkpoint, or is not among the tasks, the task trains all steps itself.
  std::optional<PrefixOfTask> prefix{};
  /// The run's rule is a Python function, so rubato.compare() trains it in its own process.
  bool is_pythons = false;
  /// The run has ended and is trained again, from its first step, to compare the results.
  bool is_check = false;
};

/// The outcome of a task.
enum class TaskEnd {
  /// The run has a summary, or a message that says why it failed.
  ended,
  /// The run was killed, ran out of memory or could not write, which says nothing about the run
  /// itself. The next call of execute() continues it.
  missing,
};

/// Receives the progress of execute().
class PoolObserver {
 public:
  PoolObserver() = default;
  virtual ~PoolObserver() = default;
  PoolObserver(const PoolObserver&) = delete;
  PoolObserver& operator=(const PoolObserver&) = delete;

  virtual void on_start(const RunTask& task) = 0;
  /// Called when a task has ended, `seconds` after its start; `why` says why it is missing, if it
  /// is.
  virtual void on_end(const RunTask& task, TaskEnd end, double seconds, const std::string& why) = 0;
  /// Called before on_end() if the run had a result when the task ended; the new one is the same,
  /// or has been set beside it.
  virtual void on_second(const RunTask& task, const Publication& publication) = 0;
  /// Called when the process that forks runs has failed, as described by `why`; the run that is
  /// next is started by itself.
  virtual void on_server_failed(const std::string& /*why*/) {}
  /// Called several times a second.
  virtual void on_tick() = 0;
};

struct PoolOptions {
  /// Path of the program `rubato`.
  std::filesystem::path program;
  /// Number of runs at the same time, at least 1.
  std::int64_t jobs = 1;
  /// True if tasks wait as long as others work at their runs; otherwise these are trained twice.
  bool waits_for_others = true;
  /// Returns whether to stop: the active runs then write checkpoints and end, and no other begins.
  /// May be empty.
  std::function<bool()> stopping;
};

/// Executes all tasks in their order, except that one with a prefix waits for it, each by a process
/// of its own: `rubato train` starts the run in the folder of the worker, or resumes it with the
/// state that others have left, and its result is published. It makes no difference to a run
/// whether its process was forked (RunTask::workload). Skips tasks that have ended already; a task
/// of Python's is missing until Python has trained it. A run that failed leaves its message in its
/// `failed` file, and so does one whose process has crashed twice; after the first crash it is
/// missing. A resumed run that fails is begun anew first, as what others have left may be damaged.
/// Throws Error if a process cannot be started; no child is left then.
void execute(std::span<const RunTask> tasks, const PoolOptions& options, const Worker& worker,
             PoolObserver& observer);

}  // namespace rubato
