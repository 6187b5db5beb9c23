#include "process.hpp"

#include <cerrno>
#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rubato {

std::vector<char*> exec_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  // exec() does not write to them.
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

pid_t start_child(const std::string& program, const std::vector<std::string>& arguments,
                  const std::function<void(pid_t parent)>& prepare) {
  // All that takes memory comes before fork(): in the child another thread may hold malloc's lock.
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
  // It may have ended before.
  if (getppid() != parent) _exit(kCannotStart);
  setpgid(0, 0);
}

void await_child(pid_t child) {
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void kill_child(pid_t child) {
  kill(child, SIGKILL);
  await_child(child);
}

}  // namespace rubato
