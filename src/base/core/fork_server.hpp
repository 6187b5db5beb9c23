#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace rubato {

// A process that has prepared something forks children that use it, one for each request of its
// parent (docs/adr/0084-forked-runs.md). The children are the parent's: it waits for them, and
// they receive its signals, as if it had started them by start_child().
//
// The two processes exchange messages over a socket of whole messages (SOCK_SEQPACKET):
//
//     parent  ERRORS\0WORD\0WORD...   fork a child for this ForkRequest
//     server  +       it is prepared: it answers the next request
//             -       it is preparing again, and did not fork: ask again after +
//             cPID    it has forked the child PID; the end of a connection to the child comes
//                     with the message (SCM_RIGHTS)
//             !WHY    it cannot fork, with the reason
//
// A child begins when the parent writes to that end, which it does as soon as it has the message,
// and ends with kCannotStart when the end is closed instead.

/// A command that a child is to execute.
struct ForkRequest {
  /// The file that becomes its stderr; what it contains is lost.
  std::string errors;
  /// The words of its command, of which the first is the name of the program, and the second that
  /// of the subcommand. `ps` shows them.
  std::vector<std::string> words;
};

/// The process that forks. It may have no threads but the calling one, as these would be missing in
/// the children: it forks nothing while it has.
class ForkServer {
 public:
  /// Takes the connection to the parent, which is stdin, and makes /dev/null stdin. Throws Error if
  /// stdin is no such connection.
  ForkServer();
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  /// Answers requests, and returns in each child, with its request. Returns nothing in the server,
  /// once the parent has closed the connection. `prepare` is called in the beginning, and before a
  /// child is forked for which `is_prepared` returns false; neither may throw.
  ///
  /// A child has the working folder, limits, signals and open files of the server, except for its
  /// stderr, and a process group of its own. It is killed with the parent (tie_to()).
  [[nodiscard]] std::optional<ForkRequest> next_child(const std::function<bool()>& is_prepared,
                                                      const std::function<void()>& prepare);

 private:
  [[nodiscard]] bool send(std::string_view answer) const;
  // Returns true in the child.
  [[nodiscard]] bool fork_child(const ForkRequest& request);

  int connection_ = -1;
  pid_t parent_;
};

/// The parent's end of the connection. The parent must have called adopt_orphans() before it asks.
class ForkClient {
 public:
  /// Makes a connection. Throws Error if the system has no further descriptors.
  ForkClient();
  ~ForkClient();
  ForkClient(const ForkClient&) = delete;
  ForkClient& operator=(const ForkClient&) = delete;

  /// The end that the server needs as its stdin; -1 after give().
  [[nodiscard]] int servers_end() const { return servers_end_; }
  /// Closes the server's end here, once the server has been started: the end of the server is then
  /// noticed.
  void give();

  /// The server's last message about itself.
  enum class State {
    preparing,  ///< it answers no request yet
    prepared,
    gone,  ///< it has ended, or was given up
  };
  [[nodiscard]] State state();

  struct Answer {
    /// The process of the child; 0 if there is none.
    pid_t child = 0;
    /// The reason why there is none; empty if the server is State::preparing again, or has ended.
    std::string why{};
  };
  /// Asks a server that is State::prepared for a child, and waits for the answer. A server that
  /// gives none within `patience` is given up: its state is State::gone, and it has to be killed.
  [[nodiscard]] Answer ask(const ForkRequest& request,
                           std::chrono::milliseconds patience = std::chrono::seconds(30));

 private:
  // Takes a message; false if there is none, which is waited for only with `waits`.
  [[nodiscard]] bool receive(std::string& message, bool waits);

  int connection_ = -1;
  int servers_end_ = -1;
  State state_ = State::preparing;
};

/// Makes this process the parent of processes whose parents end, if one of its descendants forked
/// them, or no longer. Returns whether the system can do that.
[[nodiscard]] bool adopt_orphans(bool adopts);

/// Makes `ps` and /proc show these words as the command of this process, if the system allows it,
/// and `top` the first two: "rubato-train".
void show_as(const std::vector<std::string>& words);

}  // namespace rubato
