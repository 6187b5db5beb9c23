#pragma once

#include <csignal>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rubato {

/// The exit code of a child whose program could not be started; shells use the same.
inline constexpr int kCannotStart = 127;

/// Arguments or an environment as exec() takes them: pointers to `texts`, which must outlive them,
/// and a null pointer.
[[nodiscard]] std::vector<char*> exec_pointers(const std::vector<std::string>& texts);

/// Starts the file `program` in a child process with `arguments`, the first of which is its name,
/// and returns the child's process id. Before that, the child calls `prepare` with the id of its
/// parent; it may only call async-signal-safe functions, and may end the child by _exit(). A child
/// that cannot start the program exits with kCannotStart. Returns -1 and sets errno if no process
/// could be created.
[[nodiscard]] pid_t start_child(const std::string& program,
                                const std::vector<std::string>& arguments,
                                const std::function<void(pid_t parent)>& prepare);

/// For use in `prepare`: the child is killed when the thread that started it ends, and has its own
/// process group, so that Ctrl-C in the terminal reaches the parent alone.
void tie_to(pid_t parent);

/// Runs `body` and returns its result. If `ulimit -s` leaves less stack than kLeastStack, it runs
/// on a thread with a larger stack, which then receives signals to the process; threads started
/// from there have larger stacks, too. `body` must not throw.
inline constexpr std::size_t kLeastStack = std::size_t{2} << 20U;
[[nodiscard]] int run_with_enough_stack(const std::function<int()>& body);

/// Ends the process with an exit code, once everything else is destroyed: writes what streams of C
/// hold, and runs no destructors of static objects. Those of libtorch take 70 ms to forget its
/// operators one by one (`perf record rubato train`), for each run of a comparison.
[[noreturn]] void leave(int code);

/// Says if the parent process passed a signal on. This process may have received the same signal
/// directly, too.
enum class PassedOn { no, once, again };
/// Passes a signal on to a child; `again` marks it as a further request.
void pass_on(pid_t child, int number, bool again = false);
/// Classifies a received signal; async-signal-safe.
[[nodiscard]] PassedOn passed_on(const siginfo_t& info);

/// Waits until a child has ended, and returns its status as waitpid() has it.
int await_child(pid_t child);
/// Kills a child and waits until it has ended.
void kill_child(pid_t child);

}  // namespace rubato
