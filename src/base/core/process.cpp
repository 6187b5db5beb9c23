#include "process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rubato {

std::vector<char*> exec_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  // The const_cast is safe: exec() does not write to them.
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

pid_t start_child(const std::string& program, const std::vector<std::string>& arguments,
                  const std::function<void(pid_t parent)>& prepare) {
  // Memory is allocated before fork(): in the child, another thread may hold malloc's lock.
  const std::vector<char*> argv = exec_pointers(arguments);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  prepare(parent);
  execv(program.c_str(), argv.data());
  _exit(kCannotStart);
}

void tie_to(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before prctl().
  if (getppid() != parent) _exit(kCannotStart);
  setpgid(0, 0);
}

int run_with_enough_stack(const std::function<int()>& body) {
  constexpr std::size_t kStack = std::size_t{8} << 20U;
  rlimit limit{};
  // RLIM_INFINITY is the largest number, so it needs no case of its own.
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastStack) return body();
  struct Call {
    const std::function<int()>& body;
    sigset_t before{};
    int result = 0;
  };
  Call call{.body = body};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_setattr_default_np(&attributes);
  // Signals are blocked on this thread and so reach the thread that works, as if it were the only
  // one.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &call.before);
  pthread_t thread{};
  const int refused = pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        auto& running = *static_cast<Call*>(argument);
        pthread_sigmask(SIG_SETMASK, &running.before, nullptr);
        running.result = running.body();
        return nullptr;
      },
      &call);
  pthread_attr_destroy(&attributes);
  if (refused != 0) {
    pthread_sigmask(SIG_SETMASK, &call.before, nullptr);
    return body();
  }
  pthread_join(thread, nullptr);
  return call.result;
}

void leave(int code) {
#ifdef RUBATO_SANITIZED
  // Leaks are looked for then.
  std::exit(code);
#else
  std::fflush(nullptr);
  _exit(code);
#endif
}

namespace {

// These values mark a signal that is passed on; nobody else sends them by chance.
constexpr int kOnce = 0x72756231;
constexpr int kAgain = 0x72756232;

}  // namespace

void pass_on(pid_t child, int number, bool again) {
  sigval value{};
  value.sival_int = again ? kAgain : kOnce;
  // If the queue of signals is full, the signal is sent without the mark.
  if (sigqueue(child, number, value) != 0) kill(child, number);
}

PassedOn passed_on(const siginfo_t& info) {
  if (info.si_code != SI_QUEUE || info.si_pid != getppid()) return PassedOn::no;
  if (info.si_value.sival_int == kAgain) return PassedOn::again;
  return info.si_value.sival_int == kOnce ? PassedOn::once : PassedOn::no;
}

int await_child(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void kill_child(pid_t child) {
  kill(child, SIGKILL);
  await_child(child);
}

}  // namespace rubato
