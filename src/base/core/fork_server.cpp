// A child is to be the parent's, so the server forks twice: the process in the middle ends at once,
// and its child goes to the nearest ancestor that adopts orphans (PR_SET_CHILD_SUBREAPER), which
// is the parent. The kernel does that before waitpid() reports the end of the middle process, so
// the parent hears of a child only once it can wait for it. The answer contains the end of a
// connection to the child, through which the parent lets it begin, so no death of the server comes
// between hearing of a child and beginning it. The child ends if nobody has that end any more: the
// server was killed before it answered, or the parent has given it up, and starts the run in
// another way.

#include "fork_server.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/prctl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

#include "process.hpp"
#include "text/text.hpp"
#include "throw_error.hpp"

namespace rubato {

namespace {

// The beginnings of answers.
constexpr char kPrepared = '+';
constexpr char kPreparing = '-';
constexpr char kForked = 'c';
constexpr char kRefused = '!';

// A longer request is refused by the system, as its sockets hold less.
constexpr std::size_t kLongestRequest = std::size_t{1} << 20U;
constexpr std::size_t kLongestAnswer = 1024;

// Room for a descriptor beside a message.
struct Passed {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
};

// Sends a message, and a copy of the descriptor `passed` unless it is -1.
bool send_to(int connection, std::string_view message, int passed = -1) {
  // The const_cast is safe: sendmsg() does not write to it.
  iovec text{.iov_base = const_cast<char*>(message.data()), .iov_len = message.size()};
  Passed beside;
  msghdr whole{};
  whole.msg_iov = &text;
  whole.msg_iovlen = 1;
  if (passed >= 0) {
    whole.msg_control = beside.room.data();
    whole.msg_controllen = beside.room.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&whole);
    header->cmsg_len = CMSG_LEN(sizeof(int));
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    std::memcpy(CMSG_DATA(header), &passed, sizeof(int));
  }
  return sendmsg(connection, &whole, MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

// Returns the length of the message, 0 if the other end is closed, and -1 with errno. Sets `passed`
// to the descriptor that comes with it, if one does.
ssize_t receive_from(int connection, std::string& message, std::size_t longest, int flags,
                     int* passed = nullptr) {
  message.resize(longest);
  iovec text{.iov_base = message.data(), .iov_len = message.size()};
  Passed beside;
  msghdr whole{};
  ssize_t length = 0;
  do {
    whole = {};
    whole.msg_iov = &text;
    whole.msg_iovlen = 1;
    if (passed != nullptr) {
      whole.msg_control = beside.room.data();
      whole.msg_controllen = beside.room.size();
    }
    length = recvmsg(connection, &whole, flags | MSG_CMSG_CLOEXEC);
  } while (length < 0 && errno == EINTR);
  message.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  const cmsghdr* const header = length < 0 ? nullptr : CMSG_FIRSTHDR(&whole);
  if (header != nullptr) std::memcpy(passed, CMSG_DATA(header), sizeof(int));
  return length;
}

// Returns whether a message, or the end of the connection, comes within `patience`.
bool comes_within(int connection, std::chrono::milliseconds patience) {
  pollfd waited_for{.fd = connection, .events = POLLIN, .revents = 0};
  int found = 0;
  do {
    found = poll(&waited_for, 1, static_cast<int>(patience.count()));
  } while (found < 0 && errno == EINTR);
  return found != 0;
}

// The folder of threads has a link for each of them, besides the two of every folder. A thread that
// has been joined is in it for a moment longer.
bool has_one_thread() {
  constexpr int kTries = 100;
  constexpr nlink_t kLinks = 3;
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int i = 0; i < kTries; ++i) {
    struct stat threads {};
    if (stat("/proc/self/task", &threads) != 0) return false;
    if (threads.st_nlink == kLinks) return true;
    nanosleep(&kPause, nullptr);
  }
  return false;
}

std::string to_message(const ForkRequest& request) {
  std::string message = request.errors;
  for (const std::string& word : request.words) {
    message += '\0';
    message += word;
  }
  return message;
}

ForkRequest to_request(std::string_view message) {
  ForkRequest request;
  for (const std::string_view word : split_at(message, '\0')) request.words.emplace_back(word);
  request.errors = request.words.front();
  request.words.erase(request.words.begin());
  return request;
}

}  // namespace

ForkServer::ForkServer() : parent_(getppid()) {
  int type = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
    throw Error("stdin is not a connection; accepted: to be started by `rubato compare`");
  }
  connection_ = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (connection_ < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) {
    throw_error("cannot take the connection: {}", std::generic_category().message(errno));
  }
  close(nothing);
}

ForkServer::~ForkServer() {
  if (connection_ >= 0) close(connection_);
}

bool ForkServer::send(std::string_view answer) const {
  return send_to(connection_, answer);
}

std::optional<ForkRequest> ForkServer::next_child(const std::function<bool()>& is_prepared,
                                                  const std::function<void()>& prepare) {
  prepare();
  if (!send({&kPrepared, 1})) return std::nullopt;
  std::string message;
  while (receive_from(connection_, message, kLongestRequest, 0) > 0) {
    if (!is_prepared()) {
      if (!send({&kPreparing, 1})) break;
      prepare();
      if (!send({&kPrepared, 1})) break;
      continue;
    }
    ForkRequest request = to_request(message);
    if (fork_child(request)) return request;
  }
  return std::nullopt;
}

bool ForkServer::fork_child(const ForkRequest& request) {
  const auto refuse = [&](std::string_view why) {
    static_cast<void>(send(fmt::format("{}{}", kRefused, why)));
    return false;
  };
  if (!has_one_thread()) return refuse("it has several threads");
  // Through this the server learns the number of the child, and the parent lets the child begin.
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return refuse(std::generic_category().message(errno));
  }
  const auto [servers, childs] = ends;
  const pid_t middle = fork();
  if (middle == 0) {
    const pid_t child = fork();
    if (child != 0) {
      static_cast<void>(send_to(childs, {reinterpret_cast<const char*>(&child), sizeof(child)}));
      _exit(child < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    close(servers);
    close(connection_);
    connection_ = -1;
    char go = 0;
    if (read(childs, &go, 1) != 1) _exit(kCannotStart);
    close(childs);
    tie_to(parent_);
    const int errors = open(request.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (errors < 0 || dup2(errors, STDERR_FILENO) < 0) _exit(kCannotStart);
    close(errors);
    show_as(request.words);
    return true;
  }
  close(childs);
  std::string number;
  pid_t child = -1;
  if (middle > 0) {
    await_child(middle);
    if (receive_from(servers, number, sizeof(child), MSG_DONTWAIT) == sizeof(child)) {
      std::memcpy(&child, number.data(), sizeof(child));
    }
  }
  if (child <= 0) {
    close(servers);
    return refuse("the system allows no further process");
  }
  static_cast<void>(send_to(connection_, fmt::format("{}{}", kForked, child), servers));
  close(servers);
  return false;
}

ForkClient::ForkClient() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw_error("cannot make a connection: {}", std::generic_category().message(errno));
  }
  connection_ = ends[0];
  servers_end_ = ends[1];
}

ForkClient::~ForkClient() {
  give();
  close(connection_);
}

void ForkClient::give() {
  if (servers_end_ >= 0) close(servers_end_);
  servers_end_ = -1;
}

bool ForkClient::receive(std::string& message, bool waits) {
  if (state_ == State::gone) return false;
  int child = -1;
  const ssize_t length =
      receive_from(connection_, message, kLongestAnswer, waits ? 0 : MSG_DONTWAIT, &child);
  if (length < 0 && errno == EAGAIN) return false;
  if (length <= 0) {
    state_ = State::gone;
    return false;
  }
  if (message.front() == kPrepared) state_ = State::prepared;
  if (message.front() == kPreparing) state_ = State::preparing;
  if (child >= 0) {
    static_cast<void>(send_to(child, "g"));
    close(child);
  }
  return true;
}

ForkClient::State ForkClient::state() {
  std::string message;
  while (receive(message, /*waits=*/false)) {
  }
  return state_;
}

ForkClient::Answer ForkClient::ask(const ForkRequest& request, std::chrono::milliseconds patience) {
  if (state() != State::prepared) return {};
  if (!send_to(connection_, to_message(request))) {
    if (errno == EPIPE || errno == ECONNRESET) {
      state_ = State::gone;
      return {};
    }
    return {.why = std::generic_category().message(errno)};
  }
  const bool is_silent = !comes_within(connection_, patience);
  // The server can send nothing more, so a child that is not known by now does not begin.
  if (is_silent) shutdown(connection_, SHUT_RD);
  std::string message;
  if (!receive(message, /*waits=*/true)) return {.why = is_silent ? "it does not answer" : ""};
  // An answer at the last moment counts, and the server, of which nothing more is heard, ends.
  if (is_silent) shutdown(connection_, SHUT_WR);
  if (message.front() == kRefused) return {.why = message.substr(1)};
  if (message.front() != kForked) return {};
  return {.child = static_cast<pid_t>(std::strtol(message.c_str() + 1, nullptr, 10))};
}

bool adopt_orphans(bool adopts) {
  return prctl(PR_SET_CHILD_SUBREAPER, adopts ? 1UL : 0UL, 0UL, 0UL, 0UL) == 0;
}

void show_as(const std::vector<std::string>& words) {
  // The kernel cuts it after 15 letters.
  prctl(PR_SET_NAME, fmt::format("{}-{}", words.at(0), words.at(1)).c_str());
  std::string text;
  for (const std::string& word : words) {
    text += word;
    text += '\0';
  }
  // The kernel reads the words from the process's memory whenever somebody asks for them.
  void* const place =
      mmap(nullptr, text.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return;
  std::memcpy(place, text.data(), text.size());
  // All places have to be given, so the others are those that the process has. Fields have the
  // numbers of proc(5); the third follows the name of the program, which is in brackets.
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::vector<std::uint64_t> numbers(3);
  for (std::string field; fields >> field;) {
    numbers.push_back(std::strtoull(field.c_str(), nullptr, 10));
  }
  constexpr std::size_t kLast = 52;
  if (numbers.size() <= kLast) return;
  prctl_mm_map map{};
  map.start_code = numbers[26];
  map.end_code = numbers[27];
  map.start_stack = numbers[28];
  map.start_data = numbers[45];
  map.end_data = numbers[46];
  map.start_brk = numbers[47];
  map.brk = reinterpret_cast<std::uint64_t>(sbrk(0));
  map.arg_start = reinterpret_cast<std::uint64_t>(place);
  map.arg_end = map.arg_start + text.size();
  map.env_start = numbers[50];
  map.env_end = numbers[51];
  map.exe_fd = static_cast<std::uint32_t>(-1);
  static_cast<void>(prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0));
}

}  // namespace rubato
