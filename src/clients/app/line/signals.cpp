// Signals pass through three layers. action_of() is a pure function that decides what a signal
// does; the handler note_signal() calls it and stores the result in lock-free atomics;
// SignalListener's thread, which the handler wakes by an eventfd, acts on the result outside of the
// handler. The handler runs with all signals blocked on its thread, but may run on several threads
// at once, so the greatest action and the time of the first signal are kept by
// compare-and-exchange. While there is a listener, std::terminate() also wakes it and waits for it,
// so that the state of the run is saved before the process aborts.

#include "signals.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <system_error>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/core/process.hpp"
#include "base/core/terminal/terminal.hpp"

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
  // The first two cannot be handled, and the others end no process.
  constexpr std::array kOthers{SIGKILL,  SIGSTOP, SIGCHLD, SIGCONT, SIGURG,
                               SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU};
  return std::find(kOthers.begin(), kOthers.end(), number) == kOthers.end();
}

bool is_fault(int number) {
  constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  return std::find(kFaults.begin(), kFaults.end(), number) != kFaults.end();
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

namespace {

// A signal handler has only globals, and only those that are lock-free are safe in it. Handlers of
// several signals may run at once, on several threads.
std::atomic<SignalRole> role_of_process{SignalRole::bystander};
std::atomic<OnTerm> term_of_process{OnTerm::leave};
std::atomic<SignalAction> asked_for{SignalAction::nothing};
std::atomic<int> ending_signal{0};
std::atomic<bool> checkpoint_asked{false};
// The time of the first signal that is_pressing(), in milliseconds of the monotonic clock; 0 if
// there was none.
std::atomic<std::int64_t> first_pressing{0};
std::atomic<int> disturbances_seen{0};
std::atomic<const char*> message_text{nullptr};
// The eventfd that wakes up the listener; -1 if there is none.
std::atomic<int> wake_up_event{-1};
// True if the listener has to end when it wakes up.
std::atomic<bool> listener_ends{false};
// The number of times that a listener has acted.
std::atomic<int> actions_done{0};
// The std::terminate() handler from before there was a listener.
std::atomic<std::terminate_handler> terminate_before{nullptr};
static_assert(std::atomic<SignalRole>::is_always_lock_free &&
              std::atomic<OnTerm>::is_always_lock_free &&
              std::atomic<SignalAction>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

std::int64_t milliseconds_now() {
  constexpr std::int64_t kPerSecond = 1'000;
  constexpr std::int64_t kNanoseconds = 1'000'000;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kPerSecond + now.tv_nsec / kNanoseconds;
}

SignalOrigin origin_of(int number, const siginfo_t& info) {
  // Signals of the kernel have a code above 0; those that a process sends do not.
  if (is_fault(number) && (info.si_code > 0 || info.si_pid == getpid())) {
    return SignalOrigin::own_fault;
  }
  if (info.si_code != SI_QUEUE) return SignalOrigin::sent;
  switch (passed_on(info)) {
    case PassedOn::once:
      return SignalOrigin::passed_on;
    case PassedOn::again:
      return SignalOrigin::passed_on_again;
    default:
      return SignalOrigin::sent;
  }
}

void wake_listener() {
  const std::uint64_t one = 1;
  // The write cannot fail before there are 2^64 signals.
  [[maybe_unused]] const ssize_t written = write(wake_up_event.load(), &one, sizeof(one));
}

// Lets the listener act before the process ends, so that an exception on a thread of some library
// does not lose the trained state. This thread may hold locks, so it only waits.
[[noreturn]] void terminate_after_listener() {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 10'000'000};
  constexpr int kPauses = 1'000;
  const int before = actions_done.load();
  wake_listener();
  for (int i = 0; i < kPauses && actions_done.load() == before; ++i) nanosleep(&kPause, nullptr);
  if (const std::terminate_handler then = terminate_before.load(); then != nullptr) then();
  std::abort();
}

// The time since the first pressing signal; negative if there was none.
std::chrono::milliseconds since_first(std::int64_t now) {
  const std::int64_t first = first_pressing.load();
  return std::chrono::milliseconds(first == 0 ? -1 : now - first);
}

// Keeps the greatest action that has been asked for, and the signal that asked for it.
void ask_for(SignalAction action, int number) {
  SignalAction before = asked_for.load();
  while (before < action && !asked_for.compare_exchange_weak(before, action)) {
  }
  if (action == SignalAction::checkpoint) checkpoint_asked.store(true);
  if (action < SignalAction::leave || before >= action) return;
  ending_signal.store(number);
  if (const char* const message = message_text.load(); message != nullptr) {
    // A failure could be reported nowhere.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
    disturbances_seen.fetch_add(1);
  }
}

void end_by(int number, const siginfo_t& info) {
  std::signal(number, SIG_DFL);
  // After a fault, the faulty instruction is executed again and now ends the process; any other
  // signal is raised again, and arrives when this handler has returned.
  if (!(is_fault(number) && info.si_code > 0)) static_cast<void>(std::raise(number));
}

extern "C" void note_signal(int number, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const std::int64_t now = milliseconds_now();
  const SignalAction action = action_of(role_of_process.load(), term_of_process.load(),
                                        {.number = number,
                                         .origin = origin_of(number, *info),
                                         .under_way = asked_for.load(),
                                         .since_first = since_first(now)});
  if (action == SignalAction::end_now) {
    end_by(number, *info);
  } else {
    std::int64_t none = 0;
    if (is_pressing(number)) first_pressing.compare_exchange_strong(none, now);
    if (action != SignalAction::nothing) {
      ask_for(action, number);
      wake_listener();
    }
  }
  errno = error;
}

extern "C" void note_return(int signal_number) {
  static_cast<void>(signal_number);
  disturbances_seen.fetch_add(1);
}

// Calls `call` with the number of each signal that is handled in a role.
template <class Call>
void for_each_signal(SignalRole of, const Call& call) {
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (of == SignalRole::bystander ? is_pressing(number) : is_ending(number)) call(number);
  }
}

}  // namespace

StopSignals::StopSignals(const char* message, SignalRole of, OnTerm term) {
  role_of_process.store(of);
  term_of_process.store(term);
  asked_for.store(SignalAction::nothing);
  ending_signal.store(0);
  checkpoint_asked.store(false);
  first_pressing.store(0);
  wake_up_event.store(eventfd(0, EFD_CLOEXEC));
  if (message != nullptr) {
    message_ = fitted(message, line_width(STDERR_FILENO));
    message_text.store(message_.c_str());
  }
  struct sigaction handled {};
  handled.sa_sigaction = note_signal;
  handled.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&handled.sa_mask);
  for_each_signal(of, [&](int number) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) != 0) return;
    // Signals that the program's caller has set to be ignored (nohup, a script's background job)
    // are left alone. So are those that a library handles, unless a user sends them to end the
    // program: UCX, which MPI loads on Ubuntu 26.04, takes SIGHUP.
    const bool is_free = before.sa_handler == SIG_DFL || is_pressing(number);
    if (before.sa_handler == SIG_IGN || !is_free) return;
    sigaction(number, &handled, nullptr);
  });
  std::signal(SIGCONT, note_return);
}

StopSignals::~StopSignals() {
  for_each_signal(role_of_process.load(), [](int number) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
        now.sa_sigaction == note_signal) {
      std::signal(number, SIG_DFL);
    }
  });
  std::signal(SIGCONT, SIG_DFL);
  message_text.store(nullptr);
  close(wake_up_event.exchange(-1));
}

SignalAction StopSignals::action() const {
  return asked_for.load();
}

int StopSignals::received() const {
  return ending_signal.load();
}

bool StopSignals::take_checkpoint_request() const {
  return checkpoint_asked.exchange(false);
}

int StopSignals::disturbances() const {
  return disturbances_seen.load();
}

void StopSignals::disturb() const {
  disturbances_seen.fetch_add(1);
}

SignalListener::SignalListener(std::function<void()> act) : act_(std::move(act)) {
  // std::terminate() would wait in vain for a thread that nothing wakes up.
  if (wake_up_event.load() < 0) {
    throw std::system_error(std::make_error_code(std::errc::bad_file_descriptor));
  }
  thread_ = std::thread([this] {
    std::uint64_t signals = 0;
    while (read(wake_up_event.load(), &signals, sizeof(signals)) == sizeof(signals) ||
           errno == EINTR) {
      if (listener_ends.load()) return;
      act_();
      actions_done.fetch_add(1);
    }
  });
  terminate_before.store(std::set_terminate(terminate_after_listener));
}

SignalListener::~SignalListener() {
  std::set_terminate(terminate_before.load());
  listener_ends.store(true);
  wake_listener();
  thread_.join();
  listener_ends.store(false);
}

ExitCode exit_code_of_signal(int signal) {
  constexpr int kOfShells = 128;
  return signal == 0 ? ExitCode::terminated : static_cast<ExitCode>(kOfShells + signal);
}

}  // namespace rubato::app
