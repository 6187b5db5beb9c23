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

/// A run to be brought to its end.
struct RunTask {
  std::string name;
  RunFiles files;
  std::int64_t threads = 1;
  /// The run's rule is a Python function, so rubato.compare() trains it in its own process.
  bool is_pythons = false;
};

/// What became of a task.
enum class TaskEnd {
  /// It has a summary, or said why it failed.
  ended,
  /// It was killed, ran out of memory or could not write: not its own result. It goes on the next
  /// time.
  missing,
};

/// Is told how the work goes on.
class PoolObserver {
 public:
  PoolObserver() = default;
  virtual ~PoolObserver() = default;
  PoolObserver(const PoolObserver&) = delete;
  PoolObserver& operator=(const PoolObserver&) = delete;

  virtual void on_start(const RunTask& task) = 0;
  /// `seconds` since its start; `why` of a task that is missing.
  virtual void on_end(const RunTask& task, TaskEnd end, double seconds, const std::string& why) = 0;
  /// Several times a second.
  virtual void on_tick() = 0;
};

struct PoolOptions {
  /// The program `rubato`.
  std::filesystem::path program;
  /// Runs at the same time, at least 1.
  std::int64_t jobs = 1;
  /// A descriptor that the children keep open; -1 is none.
  int inherited = -1;
  /// Whether to stop: the runs write checkpoints and end, and no other begins.
  std::function<bool()> stopping;
};

/// Brings all tasks to their end, in their order, each by a process of its own: `rubato train`
/// begins it or goes on with it. Tasks that have ended already are passed over; those of Python's
/// are missing until then. A run that failed leaves its words in its `failed`, and so does one
/// whose process has crashed twice; the first time it is missing. Throws Error where a process
/// cannot be started; then no child is left.
void execute(std::span<const RunTask> tasks, const PoolOptions& options, PoolObserver& observer);

}  // namespace rubato
