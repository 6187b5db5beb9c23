#include "signal_actions.hpp"

#include <csignal>

namespace rubato::app {

namespace {

SignalAction first_action(SignalRole role, OnTerm on_term, int number) {
  if (role == SignalRole::bystander) return SignalAction::stop;
  if (number == SIGUSR1) return SignalAction::checkpoint;
  // A launcher ends with its hosts, which decide by themselves what the signal means.
  if (role != SignalRole::elastic_host) return SignalAction::stop;
  if (number == SIGUSR2) return SignalAction::leave;
  // A user at the keyboard means the whole run, even if this process is supervised.
  if (number == SIGINT || number == SIGQUIT) return SignalAction::stop;
  return on_term == OnTerm::leave ? SignalAction::leave : SignalAction::stop;
}

}  // namespace

bool is_pressing(int number) {
  return number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP;
}

bool is_ending(int number) {
  switch (number) {
    // These cannot be handled.
    case SIGKILL:
    case SIGSTOP:
    // These end no process.
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      return false;
    default:
      return true;
  }
}

bool is_fault(int number) {
  switch (number) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGABRT:
      return true;
    default:
      return false;
  }
}

SignalAction action_of(SignalRole role, OnTerm on_term, const SignalEvent& event) {
  if (event.origin == SignalOrigin::own_fault) return SignalAction::end_now;
  const SignalAction action = first_action(role, on_term, event.number);
  if (action > event.under_way) return action;
  // The signal asks for no more than is under way. If it is not part of the same request, its
  // sender is impatient.
  const bool again = event.origin == SignalOrigin::passed_on_again ||
                     (event.origin == SignalOrigin::sent && event.since_first >= kOneRequest);
  if (again && is_pressing(event.number)) return SignalAction::end_now;
  return action == SignalAction::checkpoint && event.under_way == action ? action
                                                                         : SignalAction::nothing;
}

}  // namespace rubato::app
