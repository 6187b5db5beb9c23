#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

namespace rubato {

/// The limits of this process's control groups, the tightest of its own group and all above it.
struct CgroupLimits {
  /// CPU seconds per second.
  std::optional<double> cpus;
  /// Bytes of memory.
  std::optional<std::int64_t> memory;
  /// Bytes of that limit which are still available: without those in use, except cached files that
  /// the kernel can reclaim.
  std::optional<std::int64_t> memory_left;
};

/// Reads the limits of version 1, version 2, or both side by side, below `root`; a limit is empty
/// if there is none.
[[nodiscard]] CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

/// Thrown if memory or threads cannot be allocated.
class MemoryError : public Error {
 public:
  using Error::Error;
};

/// The most memory that a process can have, and the name of the limit.
struct MemoryLimit {
  double bytes = 0;
  /// The name, such as "physical memory".
  std::string what;
  /// True for a limit of the address space, which counts reserved memory whether used or not.
  bool of_addresses = false;
};

/// The lowest of the machine's physical memory, the limits of the process's control groups
/// (versions 1 and 2), and the remainders of its limits of address space (`ulimit -v`) and private
/// memory (`ulimit -d`). /proc and /sys are read below `root`.
[[nodiscard]] MemoryLimit memory_limit(const std::filesystem::path& root = "/");

/// A size in three significant digits: "512 GB", "1.5 MB".
[[nodiscard]] std::string bytes_text(double bytes);

/// Throws MemoryError if `bytes` do not fit into `limit`. `needs` says what needs them ("64 buffers
/// of 8 GB need"), `help` what would need less.
void require_memory(double bytes, std::string_view needs, std::string_view help,
                    const MemoryLimit& limit = memory_limit());

/// Throws MemoryError if the process cannot start `count` further threads, which it tries. A
/// library that fails to start a thread of its own would end the process.
void require_threads(int count);

/// True if an exception says that memory or a thread was refused: std::bad_alloc, a container
/// larger than the address space, an error of libtorch's allocator (as thrown, or quoted in another
/// error), or a thread that could not be started.
[[nodiscard]] bool is_out_of_memory(const std::exception& error);

/// A message for the user about `error`, if is_out_of_memory(): the amount asked for, if known, and
/// `help`. If a thread was refused although there is memory for its stack, the message names the
/// limit of threads.
[[nodiscard]] std::optional<std::string> memory_failure(const std::exception& error,
                                                        std::string_view help,
                                                        const MemoryLimit& limit = memory_limit());

}  // namespace rubato
