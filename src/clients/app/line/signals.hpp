#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include <rubato/base/parse.hpp>

#include "exit_code.hpp"

namespace rubato::app {

/// The kind of process that receives a signal.
enum class SignalRole {
  /// A process without state to save: a view, a server.
  bystander,
  /// A run in this process alone, or on hosts that are not elastic.
  run,
  /// One of several elastic hosts.
  elastic_host,
  /// A process that has started hosts or runs, and passes signals on to them.
  launcher,
};

/// The choice of an elastic host that alone is asked to terminate: to leave, or to stop the run.
enum class OnTerm { leave, stop };
inline constexpr std::array<Choice<OnTerm>, 2> kOnTerms{
    {{OnTerm::leave, "leave"}, {OnTerm::stop, "stop"}}};

/// The effect of a signal, in ascending order. All but the first and the last also save the state
/// before the current step at once, if there is a run.
enum class SignalAction : std::uint8_t {
  nothing,
  /// Training continues after a checkpoint.
  checkpoint,
  /// This host ends after the step, and the others continue.
  leave,
  /// The whole run ends after the step, with a checkpoint.
  stop,
  /// The process ends at once, as if it had not handled the signal.
  end_now,
};

/// The sender of a signal.
enum class SignalOrigin {
  /// Another process, a terminal, or a limit of the system.
  sent,
  /// The launcher, which passed on a signal. Signals to a whole process group reach the host
  /// directly, too, so this counts as the same request.
  passed_on,
  /// The launcher, which was asked a second time.
  passed_on_again,
  /// The process itself: an invalid address, abort().
  own_fault,
};

struct SignalEvent {
  int number = 0;
  SignalOrigin origin = SignalOrigin::sent;
  /// The most that earlier signals have asked for.
  SignalAction under_way = SignalAction::nothing;
  /// The time since the first earlier signal that is_pressing(); negative if there was none.
  std::chrono::milliseconds since_first{-1};
};

/// Signals within this time belong to the same request, as they reach the processes of a group one
/// by one, from a supervisor and from `rubato launch`.
inline constexpr std::chrono::seconds kOneRequest{1};

/// Returns true for SIGINT, SIGQUIT, SIGTERM and SIGHUP: a user who sends one of them again wants
/// an immediate end. The system repeats others by itself, such as SIGXCPU.
[[nodiscard]] bool is_pressing(int number);

/// Returns whether the signal ends a process that could handle it but does not.
[[nodiscard]] bool is_ending(int number);

/// Returns whether the processor or a check ends a faulty program by this signal.
[[nodiscard]] bool is_fault(int number);

/// Decides what a signal does in a process of this role. The result depends on the arguments alone,
/// and a signal handler may call this. docs/runs.md has the same rules as a table.
[[nodiscard]] SignalAction action_of(SignalRole role, OnTerm on_term, const SignalEvent& event);

/// While this object lives, signals ask for an action (action_of()) instead of ending the process.
/// It handles every signal that could end the process (is_ending()) and that is not ignored, and
/// leaves to libraries those that they handle and that are not pressing (is_pressing()); for a
/// bystander, only those of a terminal, a supervisor and a shell. It also counts what signals print
/// onto the terminal. At most one may exist at a time.
class StopSignals {
 public:
  /// `message` is printed to stderr by the first signal that ends something; null prints nothing.
  explicit StopSignals(const char* message, SignalRole role = SignalRole::bystander,
                       OnTerm on_term = OnTerm::leave);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The greatest action that signals have asked for.
  [[nodiscard]] SignalAction action() const;
  /// The signal that asked for that action if it ends something, else 0.
  [[nodiscard]] int received() const;
  /// Returns whether a checkpoint has been requested since the last call.
  [[nodiscard]] bool take_checkpoint_request() const;
  /// The number of times that the terminal has been written to by others, so that a drawing there
  /// has to start anew below: by the message, or by a shell while the process was stopped
  /// (SIGCONT).
  [[nodiscard]] int disturbances() const;
  /// Adds one to disturbances().
  void disturb() const;

 private:
  std::string message_;
};

/// A thread that calls `act` whenever a signal has asked for something (StopSignals), however long
/// other threads compute. std::terminate() waits for `act`, for at most ten seconds, before it ends
/// the process. At most one may exist at a time, within the life of a StopSignals.
class SignalListener {
 public:
  /// `act` must not throw. Throws std::system_error if there can be no thread, or if the system has
  /// refused StopSignals the eventfd that wakes it up.
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
