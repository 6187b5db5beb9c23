// LaunchedHosts supervises its children on one thread and without signal handlers: the signals are
// blocked, sigtimedwait() takes them one by one, and at least once a second the ended children are
// reaped. Each child is tied to this process (tie_to()), so no host outlives the launcher. Hosts of
// a fixed number end together: after the first failure the others get SIGTERM and, after kGrace,
// SIGKILL. Elastic hosts that a signal has killed are started again as often as --restarts allows,
// and meet at a `rubato rendezvous`, which is another child and is restarted whenever it ends. The
// exit code is not always that of the first child that failed; note() has the rules.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/hosts/c10d_hosts.hpp>

#include "base/core/process.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/signals.hpp"
#include "hosts/rendezvous/protocol.hpp"
#include "hosts/rendezvous/socket.hpp"

namespace rubato::app {

namespace {

using rendezvous_detail::Socket;

constexpr std::int64_t kMaxRestarts = 1'000'000;
// The time that hosts have to write their checkpoints after another host has failed.
constexpr std::chrono::seconds kGrace{30};
// A shell adds this to the number of the signal that killed a process.
constexpr int kKilled = 128;

[[noreturn]] void fail(std::string_view what) {
  throw_error("cannot {}: {}", what, std::generic_category().message(errno));
}

// Returns a socket bound to a port at which nobody listens. It has SO_REUSEADDR: host 0 can still
// listen there, but the system gives the port to no other process that asks for a free one.
Socket reserved_port() {
  Socket reserved(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const int descriptor = reserved.descriptor();
  const bool is_bound =
      reserved && setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      bind(descriptor, static_cast<sockaddr*>(static_cast<void*>(&address)), sizeof(address)) == 0;
  if (!is_bound) fail("find a free port");
  return reserved;
}

// Makes a random token that no other user of this machine can know. Returns the name of an unlinked
// file with it, which only this process and its children can open, and which stays open until they
// end.
std::string file_with_token() {
  const std::string text = new_nonce() + new_nonce() + "\n";
  const int file = memfd_create("rubato-token", 0);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    fail("keep a token");
  }
  return fmt::format("/dev/fd/{}", file);
}

// The set has SIGCHLD and the signals that are passed on, except those that the caller of the
// program has set to be ignored.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction now {};
    if (!is_ending(number) || is_fault(number) || sigaction(number, nullptr, &now) != 0) continue;
    if (now.sa_handler == SIG_DFL) sigaddset(&set, number);
  }
  return set;
}

// The processes of the hosts, and of the rendezvous that serves them.
class LaunchedHosts {
 public:
  // Without `restarts`, the run ends when one of its hosts fails. With it, hosts are elastic: those
  // that are killed are started again, up to that number in total.
  explicit LaunchedHosts(std::optional<std::int64_t> restarts) : restarts_(restarts) {
    sigprocmask(SIG_BLOCK, &watched_, nullptr);
  }
  ~LaunchedHosts() {
    for (const Host& host : running_) kill_child(host.process);
    if (server_ != 0) kill_child(server_);
  }
  LaunchedHosts(const LaunchedHosts&) = delete;
  LaunchedHosts& operator=(const LaunchedHosts&) = delete;

  void start(std::vector<std::string> arguments) {
    const pid_t process = started(arguments);
    running_.push_back({.process = process, .arguments = std::move(arguments)});
  }
  // Starts a server, and starts it again whenever it ends before the hosts do.
  void serve(std::vector<std::string> arguments) {
    server_arguments_ = std::move(arguments);
    serve_again();
  }

  // Waits for all hosts to end. Returns the exit code.
  int wait() {
    std::optional<Clock::time_point> end;
    while (!running_.empty()) {
      take_signal();
      reap();
      if (server_ == 0 && !server_arguments_.empty()) serve_again();
      if (restarts_ || first_failure_ == 0 || running_.empty()) continue;
      // One host has failed, so all have to end.
      if (!end) {
        end = Clock::now() + kGrace;
        end_hosts(SIGTERM);
      }
      if (Clock::now() < *end) continue;
      for (const Host& host : running_) kill(host.process, SIGKILL);
    }
    return restarts_ ? last_code_ : first_failure_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Host {
    pid_t process = 0;
    std::vector<std::string> arguments{};
    // True once the host has been asked to end.
    bool is_asked = false;
  };

  [[nodiscard]] pid_t started(const std::vector<std::string>& arguments) const {
    const pid_t process = start_child("/proc/self/exe", arguments, [this](pid_t parent) {
      // No host outlives this process, however it ends. Signals are blocked here only, as this
      // process passes them on.
      tie_to(parent);
      sigprocmask(SIG_UNBLOCK, &watched_, nullptr);
    });
    if (process < 0) fail("start a host");
    return process;
  }

  void take_signal() {
    const timespec patience{.tv_sec = 1, .tv_nsec = 0};
    const int number = sigtimedwait(&watched_, nullptr, &patience);
    if (number <= 0 || number == SIGCHLD) return;
    SignalEvent event{.number = number, .under_way = asked_for_};
    if (first_pressing_) {
      event.since_first =
          std::chrono::floor<std::chrono::milliseconds>(Clock::now() - *first_pressing_);
    } else if (is_pressing(number)) {
      first_pressing_ = Clock::now();
    }
    const SignalAction action = action_of(SignalRole::launcher, OnTerm::stop, event);
    if (action <= SignalAction::stop) asked_for_ = std::max(asked_for_, action);
    if (action == SignalAction::stop) end_hosts(number);
    if (action == SignalAction::checkpoint || action == SignalAction::end_now) {
      const bool again = action == SignalAction::end_now;
      for (const Host& host : running_) pass_on(host.process, number, again);
    }
  }
  // Waits for every child that has ended, hosts or not: as process 1 of a container, this process
  // also inherits orphans.
  void reap() {
    std::vector<Host> killed;
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == server_) server_ = 0;
      const auto host = std::ranges::find(running_, ended, &Host::process);
      if (host == running_.end()) continue;
      note(WIFEXITED(status) ? WEXITSTATUS(status) : kKilled + WTERMSIG(status));
      if (WIFSIGNALED(status)) killed.push_back(std::move(*host));
      running_.erase(host);
    }
    for (Host& host : killed) {
      if (!restarts_ || *restarts_ == 0 || is_ending_) continue;
      --*restarts_;
      start(std::move(host.arguments));
    }
  }
  // The server starts at the same port, and live hosts then restore its contents. It is started at
  // most once a second, in case it always ends at once.
  void serve_again() {
    if (Clock::now() < next_service_) return;
    next_service_ = Clock::now() + std::chrono::seconds(1);
    server_ = started(server_arguments_);
  }
  // The exit code is that of the host that failed first. A host that has lost another one may end
  // before it, so host_lost gives way to another failure.
  void note(int code) {
    // A restarted host may find the run ended; the result of the run is then the code of another
    // host.
    if (code != static_cast<int>(ExitCode::run_ended) || last_code_ == 0) last_code_ = code;
    const int lost = static_cast<int>(ExitCode::host_lost);
    const bool asked = is_ending_ && code > kKilled;
    if (first_failure_ == 0 || (first_failure_ == lost && code != 0 && code != lost && !asked)) {
      first_failure_ = code;
    }
  }
  // Asks the hosts to end, except those that have been asked before.
  void end_hosts(int number) {
    is_ending_ = true;
    for (Host& host : running_) {
      if (!std::exchange(host.is_asked, true)) pass_on(host.process, number);
    }
  }

  const sigset_t watched_ = watched_signals();
  std::optional<std::int64_t> restarts_;
  std::vector<Host> running_;
  // 0 while no server is running.
  pid_t server_ = 0;
  std::vector<std::string> server_arguments_;
  Clock::time_point next_service_{};
  int first_failure_ = 0;
  int last_code_ = 0;
  bool is_ending_ = false;
  // The most that signals have asked for so far, and the time of the first pressing one.
  SignalAction asked_for_ = SignalAction::nothing;
  std::optional<Clock::time_point> first_pressing_;
};

struct LaunchArguments {
  int hosts = 2;
  // --min-hosts; 0 if the hosts are not elastic.
  int least = 0;
  std::int64_t restarts = 10;
  std::vector<std::string> command;
};

LaunchArguments parse(std::span<const std::string> arguments) {
  LaunchArguments read;
  // The arguments after the first -- belong to another command.
  const auto border = std::ranges::find(arguments, "--");
  CommandLine line("rubato launch",
                   "Trains on several hosts that are processes of this machine, to try it: `rubato "
                   "launch --hosts 3 -- train OPTIONS` starts `rubato train OPTIONS` with --hosts "
                   "3 and a --rank each, and a token that only they know.");
  line.whole("hosts", "N", "the number of hosts", fmt::to_string(read.hosts), read.hosts, 1,
             kMaxHosts);
  line.whole("min-hosts", "N",
             "the run continues with N of them; killed hosts are restarted and rejoin", "",
             read.least, 1, kMaxHosts);
  line.whole("restarts", "N", "how often hosts are restarted, in total",
             fmt::to_string(read.restarts), read.restarts, 0, kMaxRestarts);
  line.rest("train OPTIONS");
  line.footer(
      "Signals are forwarded. When a host fails, the others are asked to end. The exit\n"
      "code is that of the first host that failed, or 128 plus the signal that killed\n"
      "it; with --min-hosts, that of the last host that ended.");
  line.parse({arguments.begin(), border});
  if (read.least > read.hosts) {
    throw_error("--min-hosts {}: there are {} hosts; accepted: 1 to {}", read.least, read.hosts,
                read.hosts);
  }
  line.refuse_idle("restarts", read.least == 0, "a run does not continue without one of its hosts",
                   "with --min-hosts N");
  if (border != arguments.end()) {
    read.command = with_kept_configuration({border + 1, arguments.end()});
  }
  if (read.command.empty() || read.command.front() != "train") {
    throw Error("nothing to launch; accepted: rubato launch --hosts N -- train OPTIONS");
  }
  return read;
}

// Returns the --token-file in the hosts' command, which overrides the one of this command; empty if
// there is none.
std::optional<std::string> token_file_in(std::span<const std::string> command) {
  constexpr std::string_view kOption = "--token-file";
  std::optional<std::string> file;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == kOption && i + 1 < command.size()) file = command[i + 1];
    if (word.starts_with(kOption) && word.substr(kOption.size()).starts_with('=')) {
      file = word.substr(kOption.size() + 1);
    }
  }
  return file;
}

}  // namespace

int launch_command(std::span<const std::string> arguments) {
  const auto launched = parse(arguments);
  const Socket reserved = reserved_port();
  const std::string port = fmt::to_string(port_of(reserved));
  const std::string token = file_with_token();
  const bool elastic = launched.least > 0;
  LaunchedHosts hosts(elastic ? std::optional(launched.restarts) : std::nullopt);
  if (elastic) {
    hosts.serve({"rubato", "rendezvous", "--port", port, "--address", "127.0.0.1", "--token-file",
                 token_file_in(launched.command).value_or(token), "--quiet"});
  }
  for (int rank = 0; rank < launched.hosts; ++rank) {
    std::vector<std::string> command{"rubato", "train"};
    if (launched.hosts > 1 || elastic) {
      // The user's options come after these, because the last of several values counts.
      command.insert(command.end(),
                     {"--hosts", fmt::to_string(launched.hosts), "--token-file", token});
      const std::string rendezvous = "127.0.0.1:" + port;
      if (elastic) {
        // The launcher passes a signal on to all hosts, so it stops the run.
        command.insert(command.end(), {"--min-hosts", fmt::to_string(launched.least), "--on-term",
                                       "stop", "--rendezvous", rendezvous + "/launched"});
      } else {
        command.insert(command.end(), {"--rank", fmt::to_string(rank), "--rendezvous", rendezvous});
      }
    }
    command.insert(command.end(), launched.command.begin() + 1, launched.command.end());
    hosts.start(std::move(command));
  }
  return hosts.wait();
}

}  // namespace rubato::app
