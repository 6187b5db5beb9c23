#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include <rubato/base/parse.hpp>

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

}  // namespace rubato::app
