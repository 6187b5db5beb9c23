#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "exit_code.hpp"
#include "signal_actions.hpp"

namespace rubato::app {

/// While this object lives, signals ask for an action (action_of()) instead of ending the process.
/// It handles every signal that could end the process (is_ending()) and that nobody else handles or
/// ignores; for a bystander, only those of a terminal, a supervisor and a shell. It also counts
/// what signals print onto the terminal. At most one may exist at a time.
class StopSignals {
 public:
  /// `message` is printed to stderr by the first signal that ends something; null prints nothing.
  explicit StopSignals(const char* message, SignalRole role = SignalRole::bystander,
                       OnTerm on_term = OnTerm::leave);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Replaces the message.
  void announce(const char* message);
  /// The greatest action that signals have asked for.
  [[nodiscard]] SignalAction action() const;
  /// The signal that asked for that action if it ends something, else 0.
  [[nodiscard]] int received() const;
  /// Returns whether a checkpoint has been requested since the last call.
  [[nodiscard]] bool take_checkpoint_request() const;
  [[nodiscard]] bool wants_checkpoint() const;
  /// The number of times that the terminal has been written to by others, so that a drawing there
  /// has to start anew below: by the message, or by a shell while the process was stopped
  /// (SIGCONT).
  [[nodiscard]] int disturbances() const;
  /// Adds one to disturbances().
  void disturb() const;

 private:
  // All messages so far are kept, because a handler may still be printing an earlier one.
  std::deque<std::string> messages_;
};

/// A thread that calls `act` whenever a signal has asked for something (StopSignals), however long
/// other threads compute. std::terminate() waits for `act`, for at most ten seconds, before it ends
/// the process. At most one may exist at a time, within the life of a StopSignals.
class SignalListener {
 public:
  /// `act` must not throw.
  explicit SignalListener(std::function<void()> act);
  /// Waits for the thread.
  ~SignalListener();
  SignalListener(const SignalListener&) = delete;
  SignalListener& operator=(const SignalListener&) = delete;

 private:
  std::function<void()> act_;
  std::thread thread_;
};

/// Returns 128 plus the number of the signal that ended a command, as a shell does.
[[nodiscard]] ExitCode exit_code_of_signal(int signal);

}  // namespace rubato::app
