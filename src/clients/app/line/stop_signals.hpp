#pragma once

#include <deque>
#include <string>

#include "exit_code.hpp"

namespace rubato::app {

/// While it lives, the first SIGINT or SIGTERM is only noted, and the second ends the process at
/// once. It counts what signals bring to the terminal. One at a time.
class StopSignals {
 public:
  /// `message` is printed to stderr when the first arrives, unless it is null.
  explicit StopSignals(const char* message);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Another message from now on.
  void announce(const char* message);
  /// The signal that arrived; 0 while none has.
  [[nodiscard]] int received() const;
  /// How often something has come onto the terminal, below which what is drawn there would be drawn
  /// anew: the message, or a shell while the process was stopped (SIGCONT).
  [[nodiscard]] int disturbances() const;

 private:
  // All that were announced: a signal that arrives meanwhile may print the one before.
  std::deque<std::string> messages_;
};

/// Of a command that a signal has ended.
[[nodiscard]] ExitCode exit_code_of_signal(int signal);

}  // namespace rubato::app
