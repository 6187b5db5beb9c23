#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/system/process.hpp"

namespace rubato {

/// How a child ended.
struct ChildEnd {
  /// -1 where a signal ended it.
  int code = -1;
  /// 0 where none did.
  int signal = 0;
};

/// A program that this process has started, in a process group of its own: Ctrl-C in the terminal
/// reaches this process alone. It reads nothing, prints nothing to stdout, and is killed when the
/// thread that started it ends.
class ChildProcess {
 public:
  /// Starts the file `program` with `arguments`, the first of which is its name. Its stderr goes to
  /// `errors`, and `inherited` (a descriptor; -1 is none) stays open in it. Throws Error where
  /// there can be no further process; a program that cannot be started ends with kCannotStart.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& errors, int inherited);
  /// Kills it where it has not ended.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Whether it has ended, and then how. Does not wait.
  [[nodiscard]] bool has_ended(ChildEnd& end);
  /// Asks it to terminate (SIGTERM).
  void terminate() const;

 private:
  pid_t process_ = -1;
};

/// While it lives, wait() is woken by children that end.
class ChildWatch {
 public:
  ChildWatch();
  ~ChildWatch();
  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;

  /// Returns when a child has ended since the last call, a signal has come, or after
  /// `milliseconds` (below 1000).
  void wait(int milliseconds) const;
};

}  // namespace rubato
