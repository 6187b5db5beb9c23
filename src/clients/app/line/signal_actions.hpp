#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include <rubato/base/parse.hpp>

namespace rubato::app {

/// Who a signal comes to.
enum class SignalRole {
  /// Something that has nothing to keep: a view, a server.
  bystander,
  /// A run on this process alone, or one of hosts of which none can be spared.
  run,
  /// One of hosts that come and go.
  elastic_host,
  /// A launcher has started hosts or runs, and passes signals on to them.
  launcher,
};

/// An elastic host that alone is asked to terminate either leaves or stops the run.
enum class OnTerm { leave, stop };
inline constexpr std::array<Choice<OnTerm>, 2> kOnTerms{
    {{OnTerm::leave, "leave"}, {OnTerm::stop, "stop"}}};

/// A signal has one of these effects, from the least to the most. All but the first and the last
/// also save the state before the step at once, if there is a run.
enum class SignalAction : std::uint8_t {
  nothing,
  /// Training goes on after a checkpoint.
  checkpoint,
  /// This host ends after the step, the others go on.
  leave,
  /// All ends after the step, with a checkpoint.
  stop,
  /// The process ends at once, as if it had not handled the signal.
  end_now,
};

/// How a signal has come.
enum class SignalOrigin {
  /// From another process, a terminal, a limit of the system's.
  sent,
  /// From the launcher, which a signal to all processes reaches as well: not another request.
  passed_on,
  /// From the launcher, which has been asked again.
  passed_on_again,
  /// The process has raised it: an invalid address, abort().
  own_fault,
};

struct SignalEvent {
  int number = 0;
  SignalOrigin origin = SignalOrigin::sent;
  /// The most that signals before it have asked for.
  SignalAction under_way = SignalAction::nothing;
  /// Since the first of them that is_pressing(); negative where none has come.
  std::chrono::milliseconds since_first{-1};
};

/// Signals of the same request follow each other within this time: to the processes of a group one
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
/// and a signal handler may call this. The table in docs/runs.md describes this function.
[[nodiscard]] SignalAction action_of(SignalRole role, OnTerm on_term, const SignalEvent& event);

}  // namespace rubato::app
