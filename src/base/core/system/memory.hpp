#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

namespace rubato {

/// Memory that cannot be had.
class MemoryError : public Error {
 public:
  using Error::Error;
};

/// How much memory a process can have at most, and what says so.
struct MemoryLimit {
  double bytes = 0;
  /// "physical memory".
  std::string what;
  /// Whether it counts what is set aside, used or not: a limit of the address space.
  bool of_addresses = false;
};

/// The lowest of the machine's physical memory, the limits of the control groups that the process
/// is in (versions 1 and 2), and what its limits of address space (`ulimit -v`) and of memory of
/// its own (`ulimit -d`) leave it. `root` is where /proc and /sys are.
[[nodiscard]] MemoryLimit memory_limit(const std::filesystem::path& root = "/");

/// "512 GB", "1.5 MB": three digits.
[[nodiscard]] std::string bytes_text(double bytes);

/// Throws MemoryError where `bytes` cannot fit into `limit`. `needs` says what needs them ("64
/// buffers of 8 GB need"), `help` what would need less.
void require_memory(double bytes, std::string_view needs, std::string_view help,
                    const MemoryLimit& limit = memory_limit());

/// Throws MemoryError where the process could not start `count` further threads: it starts and ends
/// them. A library whose own thread finds that out ends the process.
void require_threads(int count);

/// Returns whether an exception says that memory or a thread was refused: std::bad_alloc, a
/// container longer than there are addresses, an error of libtorch's allocator (as it was thrown,
/// or named in another error), or a thread that could not be started.
[[nodiscard]] bool is_out_of_memory(const std::exception& error);

/// What to tell a user of `error` where is_out_of_memory(): how much was asked for, where that is
/// known, and `help`. Where a thread was refused although there is memory for its stack, it says
/// which limit of threads is reached.
[[nodiscard]] std::optional<std::string> memory_failure(const std::exception& error,
                                                        std::string_view help,
                                                        const MemoryLimit& limit = memory_limit());

}  // namespace rubato
