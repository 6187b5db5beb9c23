// The first half of this file starts and watches single processes; the second schedules them.
// RunPool is a loop on the calling thread: it starts tasks that are ready while fewer than `jobs`
// run, waits for SIGCHLD or 100 ms, and collects the processes that have ended. Runs that share a
// workload are forked from a process that has loaded it (docs/adr/0084), which is a child like all
// others; whatever keeps it from that, a run is started by itself instead. take_end() decides
// what an end means: a summary is published as the result, an error of the run itself as its
// failure, and an end that says nothing about the run, such as a full disk or a signal from
// outside, leaves the run to the next call. Only async-signal-safe functions are called between
// fork and exec.

#include "run_pool.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <set>
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
#include "run_servers.hpp"

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
void prepare(const char* errors, int inherited, int input, pid_t parent) {
  // The child dies with its parent, so that no orphan keeps working in the experiment's folder.
  tie_to(parent);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (std::signal(number, SIG_DFL) == SIG_IGN) std::signal(number, SIG_IGN);
  }
  const sigset_t children = child_signal();
  sigprocmask(SIG_UNBLOCK, &children, nullptr);
  put_in_place(input < 0 ? open("/dev/null", O_RDONLY) : input, STDIN_FILENO);
  put_in_place(open("/dev/null", O_WRONLY), STDOUT_FILENO);
  put_in_place(open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
  if (inherited >= 0) fcntl(inherited, F_SETFD, 0);
}

}  // namespace

std::string in_words(const ChildEnd& end) {
  if (end.signal != 0) {
    return fmt::format("killed by signal {} ({})", end.signal, sigdescr_np(end.signal));
  }
  if (end.code == kCannotStart) return "could not be started";
  return fmt::format("ended with code {}", end.code);
}

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments,
                           const std::filesystem::path& errors, int inherited, int input)
    : process_(start_child(program, arguments, [&](pid_t parent) {
        prepare(errors.c_str(), inherited, input, parent);
      })) {
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
  int status = SIGKILL;
  const pid_t ended = waitpid(process_, &status, WNOHANG);
  // A process that is nobody's child any more, against all rules, would be waited for without end.
  if (ended != process_ && (ended >= 0 || errno != ECHILD)) return false;
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

// Milliseconds between two looks at what goes on, and those while a workload is being loaded.
constexpr int kTick = 100;
constexpr int kShortTick = 10;

// Exit codes of `rubato train` that say nothing about the run itself: the disk was full, memory was
// exhausted, or the program could not be started. Higher codes mean that it obeyed a signal
// (src/clients/app/line/exit_code.hpp).
constexpr std::array<int, 3> kNotItsOwn{24, 25, kCannotStart};

// Signals by which a faulty program ends itself; all others are sent from outside.
constexpr std::array<int, 6> kCrashes{SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS};

bool has_checkpoint(const fs::path& run, std::int64_t steps) {
  const CheckpointFolder checkpoints(run / RunFolder::kCheckpoints, 1);
  return std::ranges::any_of(checkpoints.files(), [&](const fs::path& file) {
    return CheckpointFolder::steps_of(file) == steps;
  });
}

std::vector<std::string> command_for(const RunTask& task, const RunFiles& attempt, bool resumes,
                                     bool has_prefix, std::int64_t threads) {
  std::vector<std::string> command{"rubato", "train"};
  if (resumes) {
    command.insert(command.end(), {"--resume", attempt.folder.string()});
  } else {
    const fs::path& config = has_prefix ? task.prefix->config : task.files.config;
    command.insert(command.end(), {"--config", config.string(), "--out", attempt.folder.string()});
  }
  command.insert(command.end(), {"--threads", fmt::to_string(threads), "--quiet"});
  return command;
}

std::string said_in(const RunFiles& attempt) {
  try {
    return read_file(attempt.log);
  } catch (const Error&) {
    return {};
  }
}

void remove_empty_log(const RunFiles& attempt) {
  std::error_code error;
  if (fs::file_size(attempt.log, error) == 0 && !error) fs::remove(attempt.log, error);
}

bool is_done(const RunTask& task) {
  return !task.is_check && has_result(task.files);
}

// The state of one call of execute().
class RunPool {
 public:
  RunPool(std::span<const RunTask> tasks, const PoolOptions& options, const Worker& worker,
          PoolObserver& observer)
      : options_(options),
        worker_(worker),
        observer_(observer),
        servers_(options.program, worker.lock()) {
    for (const RunTask& task : tasks) {
      if (!is_done(task)) waiting_.push_back(&task);
    }
    if (waiting_.empty()) return;
    shares_ = shares_of(std::ssize(waiting_), options_, waiting_.front()->threads);
    observer_.on_shares(shares_);
  }

  void work() {
    while (true) {
      const bool stopping = options_.stopping && options_.stopping();
      if (stopping) stop();
      forget_others();
      loading_.clear();
      while (!stopping && std::ssize(running_) < options_.jobs) {
        const auto next =
            std::ranges::find_if(waiting_, [&](const RunTask* task) { return is_ready(*task); });
        if (next == waiting_.end()) break;
        const RunTask& task = **next;
        waiting_.erase(next);
        start(task);
        if (!task.workload.empty() && waiting_with(task.workload) == 0) servers_.end(task.workload);
      }
      for (const std::string& why : servers_.take_failures()) observer_.on_server_failed(why);
      if (running_.empty() && (stopping || waiting_.empty())) return;
      watch_.wait(loading_.empty() ? kTick : kShortTick);
      collect();
      observer_.on_tick();
    }
  }

 private:
  struct Running {
    const RunTask* task;
    ChildProcess process;
    Stopwatch since;
    bool is_resumed = false;
    bool is_reused = false;
  };

  // Tries every second to claim the runs at which others work.
  void forget_others() {
    if (looked_ && looked_->seconds() < 1) return;
    taken_.clear();
    looked_.emplace();
  }

  // A task that waits for another one is behind it, so that one of those that wait is always ready
  // if none is running, unless others work at it.
  [[nodiscard]] bool is_ready(const RunTask& task) {
    if (taken_.contains(task.files.folder) && !is_done(task)) return false;
    return has_steps(task) && has_workload(task) && is_claimed(task);
  }

  // Claims a task that can begin now.
  [[nodiscard]] bool is_claimed(const RunTask& task) {
    if (task.is_check || task.is_pythons) return true;
    if (worker_.claim(task.files) || !options_.waits_for_others) return true;
    taken_.insert(task.files.folder);
    return false;
  }

  [[nodiscard]] bool has_steps(const RunTask& task) const {
    if (task.is_check || !task.prefix) return true;
    const auto trains_it = [&](const RunTask* other) {
      return other->files.folder == task.prefix->run.folder;
    };
    const bool may_come = std::ranges::any_of(waiting_, trains_it) ||
                          std::ranges::any_of(running_, trains_it, &Running::task);
    return !may_come || has_prefix(task);
  }

  // False as long as the process that will fork the run is loading its workload. A workload of one
  // run is not worth a process.
  [[nodiscard]] bool has_workload(const RunTask& task) {
    if (task.workload.empty() || task.is_pythons) return true;
    // It comes before is_done(), which looks at files.
    if (loading_.contains(task.workload)) return false;
    if (is_done(task)) return true;
    if (!servers_.has(task.workload) && waiting_with(task.workload) < 2) return true;
    const bool is_loading =
        servers_.offer(task.workload, task.files.config) == RunServers::Offer::later;
    if (is_loading) loading_.insert(task.workload);
    return !is_loading;
  }

  [[nodiscard]] std::ptrdiff_t waiting_with(const std::string& workload) const {
    return std::ranges::count(waiting_, workload, &RunTask::workload);
  }

  // The number of threads of a task that is started now.
  [[nodiscard]] std::int64_t threads_of(const RunTask& task) const {
    if (shares_.cpus == 0 || !task.is_exact) return task.threads;
    return std::ssize(waiting_) < shares_.last ? shares_.last_threads : shares_.threads;
  }

  // Copies the steps that the task shares if they have been trained.
  [[nodiscard]] bool has_prefix(const RunTask& task) const {
    if (!task.prefix || task.is_check) return false;
    const auto& [run, steps, shared, config] = *task.prefix;
    if (has_checkpoint(shared, steps)) return true;
    for (const fs::path& folder : {worker_.attempt_at(run).folder, run.folder}) {
      if (has_checkpoint(folder, steps) && worker_.share(folder, shared, steps)) return true;
    }
    return false;
  }

  void start(const RunTask& task, bool anew = false) {
    if (is_done(task)) {
      observer_.on_end(task, TaskEnd::ended, 0, {});
      return;
    }
    if (task.is_pythons) {
      observer_.on_end(task, TaskEnd::missing, 0,
                       "its rule is a function in Python; rubato.compare(resume=..., rule=...) "
                       "trains it");
      return;
    }
    const RunFiles attempt = worker_.attempt_at(task.files);
    if (task.is_check || anew) {
      fs::remove_all(attempt.folder);
    } else {
      worker_.take_over(task.files);
    }
    fs::create_directories(attempt.folder.parent_path());
    const RunState state = state_of(attempt);
    if (state == RunState::ended) {
      publish(task);
      observer_.on_end(task, TaskEnd::ended, 0, {});
      return;
    }
    const bool is_begun = state == RunState::begun;
    if (!is_begun) fs::remove_all(attempt.folder);
    const bool is_reused = !is_begun && !anew && !task.is_check && task.equal &&
                           worker_.begin_with(*task.equal, task.files);
    const bool resumes = is_begun || is_reused;
    const auto command =
        command_for(task, attempt, resumes, !resumes && has_prefix(task), threads_of(task));
    RunServers::Forked forked;
    if (!anew && !task.workload.empty()) {
      forked = servers_.fork_run(task.workload, command, attempt.log);
    }
    if (forked.offer == RunServers::Offer::later) {
      // A file has changed, so the workload is being loaded again.
      if (is_reused) fs::remove_all(attempt.folder);
      waiting_.insert(waiting_.begin(), &task);
      loading_.insert(task.workload);
      return;
    }
    running_.push_back(
        {.task = &task,
         .process = forked.offer == RunServers::Offer::now
                        ? ChildProcess(forked.process)
                        : ChildProcess(options_.program, command, attempt.log, worker_.lock()),
         .since = {},
         .is_resumed = resumes,
         .is_reused = is_reused});
    if (!anew) observer_.on_start(task);
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
      const Running ended = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      take_end(ended, end);
    }
  }

  void take_end(const Running& running, const ChildEnd& end) {
    const RunTask& task = *running.task;
    const RunFiles attempt = worker_.attempt_at(task.files);
    const double seconds = running.since.seconds();
    remove_empty_log(attempt);
    const bool is_others = running.is_reused && !have_same_origin(*task.equal, attempt.folder);
    if (state_of(attempt) == RunState::ended && !is_others) {
      publish(task);
      if (running.is_reused) observer_.on_reused(task);
      observer_.on_end(task, TaskEnd::ended, seconds, {});
      return;
    }
    // The next attempt would not know where this state is from.
    if (running.is_reused) fs::remove_all(attempt.folder);
    const bool missing = end.signal != 0 || end.code > kCannotStart ||
                         std::ranges::find(kNotItsOwn, end.code) != kNotItsOwn.end();
    std::string words = said_in(attempt);
    if (std::ranges::find(kCrashes, end.signal) != kCrashes.end()) {
      take_crash(task, words, in_words(end), seconds);
      return;
    }
    // A resumed run that fails is begun anew; after a stop, the next call does that.
    if (missing || (running.is_resumed && stopped_)) {
      observer_.on_end(task, TaskEnd::missing, seconds, in_words(end));
      return;
    }
    if (running.is_resumed) {
      start(task, /*anew=*/true);
      return;
    }
    if (words.empty()) words = in_words(end) + "\n";
    fail(task, words, seconds);
  }

  void publish(const RunTask& task) {
    const Publication publication = worker_.publish(task.files);
    if (publication.kind != Publication::Kind::first) observer_.on_second(task, publication);
  }

  // A first crash may be the machine's fault, so the run is tried once more.
  void take_crash(const RunTask& task, const std::string& words, const std::string& how,
                  double seconds) {
    const fs::path before = fs::path(task.files.failed).replace_extension(".crashed");
    std::error_code ignored;
    if (!is_there(before)) {
      worker_.write(before, how + "\n");
      observer_.on_end(task, TaskEnd::missing, seconds, how);
      return;
    }
    fail(task, fmt::format("{}{}, for the second time\n", words, how), seconds);
    fs::remove(before, ignored);
  }

  void fail(const RunTask& task, const std::string& words, double seconds) {
    const Publication publication = worker_.publish_failure(task.files, words);
    if (publication.kind != Publication::Kind::first) observer_.on_second(task, publication);
    observer_.on_end(task, TaskEnd::ended, seconds, {});
  }

  const PoolOptions& options_;
  const Worker& worker_;
  PoolObserver& observer_;
  ChildWatch watch_;
  // It is declared before the processes that it has forked, so that these end first.
  RunServers servers_;
  // The workloads that were still being loaded in this round of work().
  std::set<std::string> loading_;
  CpuShares shares_;
  // The runs that have not been started.
  std::vector<const RunTask*> waiting_;
  std::vector<Running> running_;
  // The runs that others had claimed, and when these began to be collected.
  std::set<fs::path> taken_;
  std::optional<Stopwatch> looked_;
  bool stopped_ = false;
};

}  // namespace

CpuShares shares_of(std::int64_t runs, const PoolOptions& options, std::int64_t threads) {
  CpuShares shares{.cpus = options.cpus,
                   .at_once = std::min(runs, options.jobs),
                   .threads = threads,
                   .last = 0,
                   .last_threads = threads};
  if (shares.cpus == 0) return shares;
  const auto share_of = [&](std::int64_t at_once) {
    return std::max<std::int64_t>(1, shares.cpus / at_once);
  };
  shares.threads = share_of(shares.at_once);
  shares.last = runs % shares.at_once;
  shares.last_threads = shares.last > 0 ? share_of(shares.last) : shares.threads;
  return shares;
}

void execute(std::span<const RunTask> tasks, const PoolOptions& options, const Worker& worker,
             PoolObserver& observer) {
  RunPool(tasks, options, worker, observer).work();
}

}  // namespace rubato
