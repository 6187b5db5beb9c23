#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/machine.hpp>

#include "base/machine/instruction_set.hpp"

namespace rubato::doctor {

/// The version of a library that the program was compiled with and the one that it runs with.
struct Version {
  std::string library{};
  /// Empty where nothing of it is compiled in.
  std::string built{};
  std::string runs{};

  friend bool operator==(const Version&, const Version&) = default;
};

/// What a program that trains finds itself with: only such a process can say.
struct TrainingProcess {
  /// The file of the BLAS.
  std::string blas_file{};
  /// As the BLAS calls itself; empty for one that does not say.
  std::string blas{};
  /// Whether it is one that is known to be fast.
  bool blas_is_fast = false;
  /// The core whose kernels OpenBLAS uses, and the one that it took by itself; empty without it.
  std::string openblas_core{};
  std::string openblas_by_itself{};
  std::string aten{};
  std::string onednn{};
  /// Of a product of two 512x512 matrices of float, on one thread; 0 where it cannot be measured.
  double gflops = 0;
  /// The file whose malloc the program gets.
  std::string malloc_file{};
  std::vector<Version> versions{};
};

/// Bytes; empty where there is no limit, or it cannot be seen.
struct Memory {
  std::optional<std::int64_t> total{};
  std::optional<std::int64_t> available{};
  std::optional<std::int64_t> cgroup_limit{};
  std::optional<std::int64_t> cgroup_left{};
  std::optional<std::int64_t> address_space{};

  /// What a process can have.
  [[nodiscard]] std::optional<std::int64_t> usable() const;
};

/// Where runs are to be written.
struct Disk {
  /// The folder, or the nearest above it that exists.
  std::filesystem::path folder{};
  bool writable = false;
  std::int64_t free = 0;
};

/// What there is of the machine, as training sees it.
struct Facts {
  std::string processor{};
  InstructionSet instruction_set = InstructionSet::sse;
  /// Hardware threads and the cores that they belong to; 0 where the machine does not say.
  int online = 0;
  int cores = 0;
  Cpus cpus{};
  /// With which training is to run.
  int threads = 1;
  /// How many threads of the machine wanted a CPU in the last minute, on average; empty where it
  /// does not say.
  std::optional<double> load{};
  Memory memory{};
  Disk disk{};
  /// "always", "madvise" or "never"; empty where it cannot be seen.
  std::string huge_pages{};
  /// Of the CPU frequency, and its driver; empty where they cannot be seen, as in virtual machines.
  std::string governor{};
  std::string frequency_driver{};
  /// The user's OPENBLAS_CORETYPE.
  std::string coretype{};
  std::string preloaded{};
  std::optional<TrainingProcess> training{};
  /// Why there is no `training`.
  std::string no_training{};
};

/// What can be seen without libtorch: /proc and /sys are read below `root`, and `out` is where runs
/// are to be written. `training` and `no_training` are left empty.
[[nodiscard]] Facts gather_facts(const std::filesystem::path& root,
                                 const std::filesystem::path& out);

}  // namespace rubato::doctor
