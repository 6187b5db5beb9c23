#include "child_process.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

namespace rubato {

namespace {

sigset_t child_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  return set;
}

void put_in_place(int descriptor, int number) {
  if (descriptor < 0 || dup2(descriptor, number) < 0) _exit(kCannotStart);
}

// Runs in the child between fork and exec, so only async-signal-safe functions are called.
void prepare(const char* errors, int inherited, pid_t parent) {
  // The child dies with its parent, so that no orphan keeps working in the experiment's folder.
  tie_to(parent);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (std::signal(number, SIG_DFL) == SIG_IGN) std::signal(number, SIG_IGN);
  }
  const sigset_t children = child_signal();
  sigprocmask(SIG_UNBLOCK, &children, nullptr);
  put_in_place(open("/dev/null", O_RDONLY), STDIN_FILENO);
  put_in_place(open("/dev/null", O_WRONLY), STDOUT_FILENO);
  put_in_place(open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
  if (inherited >= 0) fcntl(inherited, F_SETFD, 0);
}

}  // namespace

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments,
                           const std::filesystem::path& errors, int inherited)
    : process_(start_child(program, arguments,
                           [&](pid_t parent) { prepare(errors.c_str(), inherited, parent); })) {
  if (process_ < 0) {
    throw Error(fmt::format("cannot start {}: {}", program.string(),
                            std::generic_category().message(errno)));
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(process_, other.process_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (process_ >= 0) kill_child(process_);
}

bool ChildProcess::has_ended(ChildEnd& end) {
  if (process_ < 0) return true;
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) != process_) return false;
  end = {};
  if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  process_ = -1;
  return true;
}

void ChildProcess::terminate() const {
  if (process_ > 0) pass_on(process_, SIGTERM);
}

ChildWatch::ChildWatch() {
  const sigset_t set = child_signal();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

ChildWatch::~ChildWatch() {
  const sigset_t set = child_signal();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void ChildWatch::wait(int milliseconds) const {
  const sigset_t set = child_signal();
  const timespec timeout{.tv_sec = 0, .tv_nsec = milliseconds * 1'000'000L};
  sigtimedwait(&set, nullptr, &timeout);
}

}  // namespace rubato
