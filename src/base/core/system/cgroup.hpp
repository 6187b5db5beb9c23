#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace rubato {

/// What the control groups of this process allow it, the tightest of its own group and all above.
struct CgroupLimits {
  /// CPU seconds per second.
  std::optional<double> cpus;
  /// Bytes of memory.
  std::optional<std::int64_t> memory;
  /// Bytes of that which can still be had: what is used already, less the cached files that the
  /// kernel gives back.
  std::optional<std::int64_t> memory_left;
};

/// Reads them below `root`, of version 1, version 2, or both side by side; empty where there are
/// none.
[[nodiscard]] CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace rubato
