#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

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

}  // namespace rubato
