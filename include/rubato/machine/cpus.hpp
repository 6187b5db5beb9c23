#pragma once

#include <filesystem>
#include <optional>

namespace rubato {

/// The CPUs (hardware threads) that a process may use.
struct Cpus {
  /// Those that the affinity of the process allows, at least 1.
  int allowed = 1;
  /// CPU seconds per second that its control groups (version 1 or 2) grant, where they limit it.
  std::optional<double> quota;

  /// How many threads use all of it: as many as the quota is CPUs, a part of one counted as one,
  /// but not more than are allowed; at least 1.
  [[nodiscard]] int usable() const;
};

/// Those of this process; /proc and /sys are read below `root`.
[[nodiscard]] Cpus cpus(const std::filesystem::path& root = "/");

}  // namespace rubato
