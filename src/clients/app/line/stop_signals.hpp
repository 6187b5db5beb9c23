#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "exit_code.hpp"
#include "signal_actions.hpp"

namespace rubato::app {

/// While it lives, signals ask (action_of()) instead of ending the process: all that could end it
/// (is_ending()) and that nobody else handles or ignores; of a bystander those of a terminal, a
/// supervisor and a shell. It counts what signals bring to the terminal. One at a time.
class StopSignals {
 public:
  /// `message` is printed to stderr when the first one that ends something arrives, unless it is
  /// null.
  explicit StopSignals(const char* message, SignalRole role = SignalRole::bystander,
                       OnTerm on_term = OnTerm::leave);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Another message from now on.
  void announce(const char* message);
  /// The most that signals have asked for.
  [[nodiscard]] SignalAction action() const;
  /// The signal that has asked for that, where it ends something; else 0.
  [[nodiscard]] int received() const;
  /// Returns whether a checkpoint has been requested since the last call.
  [[nodiscard]] bool take_checkpoint_request() const;
  [[nodiscard]] bool wants_checkpoint() const;
  /// How often something has come onto the terminal, below which what is drawn there would be drawn
  /// anew: the message, or a shell while the process was stopped (SIGCONT).
  [[nodiscard]] int disturbances() const;
  /// Counts one more.
  void disturb() const;

 private:
  // All that were announced: a signal that arrives meanwhile may print the one before.
  std::deque<std::string> messages_;
};

/// A thread that calls `act` whenever a signal has asked for something (StopSignals), however long
/// other threads compute, and before std::terminate() ends the process, which waits for it for at
/// most ten seconds. One at a time, within the life of a StopSignals.
class SignalListener {
 public:
  /// `act` throws nothing.
  explicit SignalListener(std::function<void()> act);
  /// Waits for the thread.
  ~SignalListener();
  SignalListener(const SignalListener&) = delete;
  SignalListener& operator=(const SignalListener&) = delete;

 private:
  std::function<void()> act_;
  std::thread thread_;
};

/// Returns 128 plus the number of the signal that has ended a command, as a shell does.
[[nodiscard]] ExitCode exit_code_of_signal(int signal);

}  // namespace rubato::app
