#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/system/process.hpp"

namespace rubato {

/// The way in which a child process ended.
struct ChildEnd {
  /// Exit code; -1 if a signal ended it.
  int code = -1;
  /// Number of the signal that ended it; 0 if it exited.
  int signal = 0;
};

/// A program that this process has started, in a process group of its own, so that Ctrl-C in the
/// terminal reaches this process only. Its stdin and stdout are /dev/null, and it is killed when
/// the thread that started it ends.
class ChildProcess {
 public:
  /// Starts the file `program` with `arguments`, the first of which is its name. Its stderr goes to
  /// the file `errors`, and the descriptor `inherited` (-1 for none) stays open in it. Throws Error
  /// if no further process can be created; a program that cannot be started ends with kCannotStart.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& errors, int inherited);
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

}  // namespace rubato
