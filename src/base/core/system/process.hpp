#pragma once

#include <csignal>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rubato {

/// The exit code of a child whose program could not be started, as a shell has it.
inline constexpr int kCannotStart = 127;

/// Arguments or an environment as exec() takes them: pointers to `texts`, which have to outlive
/// them, and a null pointer.
[[nodiscard]] std::vector<char*> exec_pointers(const std::vector<std::string>& texts);

/// Starts the file `program` in a child, with `arguments`, the first of which is its name, and
/// returns the child's number. Before that, `prepare` is called in the child with the number of its
/// parent: it may call what is async-signal-safe only, and end the child by _exit(). A child that
/// cannot start the program ends with kCannotStart. Returns -1 and sets errno where there can be no
/// further process.
[[nodiscard]] pid_t start_child(const std::string& program,
                                const std::vector<std::string>& arguments,
                                const std::function<void(pid_t parent)>& prepare);

/// For `prepare`: the child is killed when the thread that started it ends, and has a process group
/// of its own, so that Ctrl-C in the terminal reaches the parent alone.
void tie_to(pid_t parent);

/// Runs `body` and returns what it returns: on this thread, or where `ulimit -s` leaves its stack
/// less than kLeastStack, on a thread with a larger one, which signals to the process then reach.
/// Threads that are started from there have larger stacks, too. `body` must not throw.
inline constexpr std::size_t kLeastStack = std::size_t{2} << 20U;
[[nodiscard]] int run_with_enough_stack(const std::function<int()>& body);

/// Says whether the parent process passed a signal on, which may then have reached this process on
/// its own already.
enum class PassedOn { no, once, again };
/// Passes a signal on to a child; `again` where it is to be taken for another request.
void pass_on(pid_t child, int number, bool again = false);
/// May be called in a signal handler.
[[nodiscard]] PassedOn passed_on(const siginfo_t& info);

/// Waits until a child has ended.
void await_child(pid_t child);
/// Kills a child first.
void kill_child(pid_t child);

}  // namespace rubato
