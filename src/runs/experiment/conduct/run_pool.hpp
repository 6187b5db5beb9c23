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
  /// True if another number of threads gives the same bits (`--exact`).
  bool is_exact = true;
  /// workload_text() of the run. Several tasks with the same text are forked from a process that
  /// has loaded their workload, if it is not empty.
  std::string workload{};
  /// The task waits until the other one has trained these steps, and goes on from there; if that
  /// one ends without the checkpoint, or is not among the tasks, the task trains all steps itself.
  std::optional<PrefixOfTask> prefix{};
  /// The folder of a run of another experiment that has ended and seems to be equal (EndedRuns).
  /// The task continues its last state, which compares the data and leaves nothing to train, and
  /// trains all steps itself if that fails, or if the result is not from the same kernels and
  /// versions.
  std::optional<std::filesystem::path> equal{};
  /// The run's rule is a Python function, so rubato.compare() trains it in its own process.
  bool is_pythons = false;
  /// The run has ended and is trained again, from its first step, to compare the results.
  bool is_check = false;
};

/// The division of the CPUs among the runs of one call of execute().
struct CpuShares {
  /// The number of CPUs that are divided; 0 if each run has the threads of its task.
  std::int64_t cpus = 0;
  /// Number of runs at the same time, and of threads of each.
  std::int64_t at_once = 1;
  std::int64_t threads = 1;
  /// Number of runs that are left when all others have ended in groups of `at_once`, and of threads
  /// of each of these.
  std::int64_t last = 0;
  std::int64_t last_threads = 1;
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

  /// Called before the first task begins, unless all have ended already.
  virtual void on_shares(const CpuShares& /*shares*/) {}
  virtual void on_start(const RunTask& task) = 0;
  /// Called when a task has ended, `seconds` after its start; `why` says why it is missing, if it
  /// is.
  virtual void on_end(const RunTask& task, TaskEnd end, double seconds, const std::string& why) = 0;
  /// Called before on_end() if the run had a result when the task ended; the new one is the same,
  /// or has been set beside it.
  virtual void on_second(const RunTask& task, const Publication& publication) = 0;
  /// Called before on_end() if the result is that of RunTask::equal.
  virtual void on_reused(const RunTask& /*task*/) {}
  /// Called when the process that forks runs has failed, as described by `why`; the run that is
  /// next is started by itself.
  virtual void on_server_failed(const std::string& /*why*/) {}
  /// Called several times a second.
  virtual void on_tick() = 0;
};

struct PoolOptions {
  /// Path of the program `rubato`.
  std::filesystem::path program;
  /// Largest number of runs at the same time, at least 1.
  std::int64_t jobs = 1;
  /// Number of CPUs that the runs divide among them (shares_of()); 0 if each has the threads of its
  /// task.
  std::int64_t cpus = 0;
  /// True if tasks wait as long as others work at their runs; otherwise these are trained twice.
  bool waits_for_others = true;
  /// Returns whether to stop: the active runs then write checkpoints and end, and no other begins.
  /// May be empty.
  std::function<bool()> stopping;
};

/// The shares of so many runs, at least 1, of which each has `threads` threads if no CPUs are
/// divided. As many runs as possible at a time make the best use of the CPUs, as the threads of a
/// run wait for each other at the end of each step; a run has several threads only if CPUs would be
/// idle otherwise: with fewer runs than CPUs, and among the last runs.
[[nodiscard]] CpuShares shares_of(std::int64_t runs, const PoolOptions& options,
                                  std::int64_t threads);

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
