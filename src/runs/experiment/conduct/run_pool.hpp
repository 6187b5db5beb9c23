#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiment_folder.hpp"

namespace rubato {

/// A run to be executed until it ends.
struct RunTask {
  std::string name;
  RunFiles files;
  std::int64_t threads = 1;
  /// The run's rule is a Python function, so rubato.compare() trains it in its own process.
  bool is_pythons = false;
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
  /// Called several times a second.
  virtual void on_tick() = 0;
};

struct PoolOptions {
  /// Path of the program `rubato`.
  std::filesystem::path program;
  /// Number of runs at the same time, at least 1.
  std::int64_t jobs = 1;
  /// A descriptor that the children keep open; -1 for none.
  int inherited = -1;
  /// Returns whether to stop: the active runs then write checkpoints and end, and no other begins.
  /// May be empty.
  std::function<bool()> stopping;
};

/// Executes all tasks in their order, each by a process of its own: `rubato train` starts or
/// resumes the run. Skips tasks that have ended already; a task of Python's is missing until Python
/// has trained it. A run that failed leaves its message in its `failed` file, and so does one whose
/// process has crashed twice; after the first crash it is missing. Throws Error if a process cannot
/// be started; no child is left then.
void execute(std::span<const RunTask> tasks, const PoolOptions& options, PoolObserver& observer);

}  // namespace rubato
