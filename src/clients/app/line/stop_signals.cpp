#include "stop_signals.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <unistd.h>

#include "base/core/terminal/terminal.hpp"

namespace rubato::app {

namespace {

// A signal handler has nothing but globals. It may use these, as they need no lock.
std::atomic<int> received_signal{0};
std::atomic<int> disturbances_seen{0};
std::atomic<const char*> message_text{nullptr};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

extern "C" void note_signal(int signal_number) {
  const int error = errno;
  received_signal.store(signal_number);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (const char* const message = message_text.load(); message != nullptr) {
    // There is nobody to tell when it fails.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
  }
  disturbances_seen.fetch_add(1);
  errno = error;
}

extern "C" void note_return(int signal_number) {
  static_cast<void>(signal_number);
  disturbances_seen.fetch_add(1);
}

}  // namespace

StopSignals::StopSignals(const char* message) {
  received_signal.store(0);
  announce(message);
  for (const int number : {SIGINT, SIGTERM}) {
    // Whoever started the program may have wanted it to be ignored (nohup, a script's background).
    if (std::signal(number, note_signal) == SIG_IGN) std::signal(number, SIG_IGN);
  }
  std::signal(SIGCONT, note_return);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGCONT, SIG_DFL);
  message_text.store(nullptr);
}

void StopSignals::announce(const char* message) {
  if (message != nullptr) messages_.push_back(fitted(message, line_width(STDERR_FILENO)));
  message_text.store(message == nullptr ? nullptr : messages_.back().c_str());
}

int StopSignals::received() const {
  return received_signal.load();
}

int StopSignals::disturbances() const {
  return disturbances_seen.load();
}

ExitCode exit_code_of_signal(int signal) {
  return signal == SIGINT ? ExitCode::interrupted : ExitCode::terminated;
}

}  // namespace rubato::app
