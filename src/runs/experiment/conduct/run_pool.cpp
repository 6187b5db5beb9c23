#include "run_pool.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"

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
    throw_error("cannot start {}: {}", program.string(), std::generic_category().message(errno));
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

namespace {

namespace fs = std::filesystem;

constexpr int kTick = 100;

// Exit codes of `rubato train` that say nothing about the run itself: the disk was full, memory was
// exhausted, or the program could not be started. Higher codes mean that it obeyed a signal
// (src/clients/app/line/exit_code.hpp).
constexpr std::array<int, 3> kNotItsOwn{24, 25, kCannotStart};

// Signals by which a faulty program ends itself; all others are sent from outside.
constexpr std::array<int, 6> kCrashes{SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS};

bool has_prefix(const PrefixOfTask& prefix) {
  const CheckpointFolder checkpoints(prefix.run / RunFolder::kCheckpoints, 1);
  return std::ranges::any_of(checkpoints.files(), [&](const fs::path& file) {
    return CheckpointFolder::steps_of(file) == prefix.steps;
  });
}

std::vector<std::string> command_for(const RunTask& task, RunState state) {
  std::vector<std::string> command{"rubato", "train"};
  if (state == RunState::begun) {
    command.insert(command.end(), {"--resume", task.files.folder.string()});
  } else {
    const fs::path& config =
        task.prefix && has_prefix(*task.prefix) ? task.prefix->config : task.files.config;
    command.insert(command.end(),
                   {"--config", config.string(), "--out", task.files.folder.string()});
  }
  command.insert(command.end(), {"--threads", fmt::to_string(task.threads), "--quiet"});
  return command;
}

std::string said(const RunTask& task) {
  try {
    return read_file(task.files.log);
  } catch (const Error&) {
    return {};
  }
}

void remove_empty_log(const RunTask& task) {
  std::error_code error;
  if (fs::file_size(task.files.log, error) == 0 && !error) fs::remove(task.files.log, error);
}

std::string in_words(const ChildEnd& end) {
  if (end.signal != 0) {
    return fmt::format("killed by signal {} ({})", end.signal, sigdescr_np(end.signal));
  }
  if (end.code == kCannotStart) return "could not be started";
  return fmt::format("ended with code {}", end.code);
}

// The state of one call of execute().
class RunPool {
 public:
  RunPool(std::span<const RunTask> tasks, const PoolOptions& options, PoolObserver& observer)
      : options_(options), observer_(observer) {
    for (const RunTask& task : tasks) waiting_.push_back(&task);
  }

  void work() {
    while (true) {
      const bool stopping = options_.stopping && options_.stopping();
      if (stopping) stop();
      while (!stopping && std::ssize(running_) < options_.jobs) {
        const auto next =
            std::ranges::find_if(waiting_, [&](const RunTask* task) { return is_ready(*task); });
        if (next == waiting_.end()) break;
        const RunTask& task = **next;
        waiting_.erase(next);
        start(task);
      }
      if (running_.empty() && (stopping || waiting_.empty())) return;
      watch_.wait(kTick);
      collect();
      observer_.on_tick();
    }
  }

 private:
  struct Running {
    const RunTask* task;
    ChildProcess process;
    Stopwatch since;
  };

  // A task that waits for another one is behind it, so that one of those that wait is always ready
  // if none is running.
  [[nodiscard]] bool is_ready(const RunTask& task) const {
    if (!task.prefix || state_of(task.files) != RunState::absent) return true;
    const auto trains_it = [&](const RunTask* other) {
      return other->files.folder == task.prefix->run;
    };
    const bool may_come = std::ranges::any_of(waiting_, trains_it) ||
                          std::ranges::any_of(running_, trains_it, &Running::task);
    return !may_come || has_prefix(*task.prefix);
  }

  void start(const RunTask& task) {
    const RunState state = state_of(task.files);
    if (state == RunState::ended || state == RunState::failed) return;
    if (task.is_pythons) {
      observer_.on_end(task, TaskEnd::missing, 0,
                       "its rule is a function in Python; rubato.compare(resume=..., rule=...) "
                       "trains it");
      return;
    }
    if (state == RunState::absent) fs::remove_all(task.files.folder);
    running_.push_back({.task = &task,
                        .process = ChildProcess(options_.program, command_for(task, state),
                                                task.files.log, options_.inherited),
                        .since = {}});
    observer_.on_start(task);
  }

  void stop() {
    if (stopped_) return;
    stopped_ = true;
    for (const Running& running : running_) running.process.terminate();
  }

  void collect() {
    for (std::size_t i = 0; i < running_.size();) {
      ChildEnd end;
      if (!running_[i].process.has_ended(end)) {
        ++i;
        continue;
      }
      const RunTask& task = *running_[i].task;
      const double seconds = running_[i].since.seconds();
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      take_end(task, end, seconds);
    }
  }

  void take_end(const RunTask& task, const ChildEnd& end, double seconds) {
    remove_empty_log(task);
    if (state_of(task.files) == RunState::ended) {
      observer_.on_end(task, TaskEnd::ended, seconds, {});
      return;
    }
    const bool missing = end.signal != 0 || end.code > kCannotStart ||
                         std::ranges::find(kNotItsOwn, end.code) != kNotItsOwn.end();
    std::string words = said(task);
    if (std::ranges::find(kCrashes, end.signal) != kCrashes.end()) {
      take_crash(task, words, in_words(end), seconds);
      return;
    }
    if (missing) {
      observer_.on_end(task, TaskEnd::missing, seconds, in_words(end));
      return;
    }
    if (words.empty()) words = in_words(end) + "\n";
    fail(task, words, seconds);
  }

  // A first crash may be the machine's fault, so the run is tried once more.
  void take_crash(const RunTask& task, const std::string& words, const std::string& how,
                  double seconds) {
    const fs::path before = fs::path(task.files.failed).replace_extension(".crashed");
    std::error_code ignored;
    if (!is_there(before)) {
      write_file(before, how + "\n");
      observer_.on_end(task, TaskEnd::missing, seconds, how);
      return;
    }
    fail(task, fmt::format("{}{}, for the second time\n", words, how), seconds);
    fs::remove(before, ignored);
  }

  void fail(const RunTask& task, const std::string& words, double seconds) {
    write_file(task.files.failed, words);
    std::error_code ignored;
    fs::remove(task.files.log, ignored);
    observer_.on_end(task, TaskEnd::ended, seconds, {});
  }

  const PoolOptions& options_;
  PoolObserver& observer_;
  ChildWatch watch_;
  // The runs that have not been started.
  std::vector<const RunTask*> waiting_;
  std::vector<Running> running_;
  bool stopped_ = false;
};

}  // namespace

void execute(std::span<const RunTask> tasks, const PoolOptions& options, PoolObserver& observer) {
  RunPool(tasks, options, observer).work();
}

}  // namespace rubato
