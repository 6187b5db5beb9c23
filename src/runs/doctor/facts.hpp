#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/machine.hpp>

#include "base/machine/instruction_set.hpp"

namespace rubato::doctor {

/// The version of a library that the program was compiled with, and the one that it runs with.
struct Version {
  std::string library{};
  /// Empty if the program was not compiled with it.
  std::string built{};
  std::string runs{};

  friend bool operator==(const Version&, const Version&) = default;
};

/// Facts that only a process that trains can know.
struct TrainingProcess {
  /// The file of the BLAS.
  std::string blas_file{};
  /// The name that the BLAS gives itself; empty if it gives none.
  std::string blas{};
  /// Whether this BLAS is known to be fast.
  bool blas_is_fast = false;
  /// The core whose kernels OpenBLAS uses, and the one that it chose by itself; empty without
  /// OpenBLAS.
  std::string openblas_core{};
  std::string openblas_by_itself{};
  std::string aten{};
  std::string onednn{};
  /// Speed of the product of two 512x512 matrices of float, on one thread; 0 if it cannot be
  /// measured.
  double gflops = 0;
  /// The file whose malloc the program uses.
  std::string malloc_file{};
  std::vector<Version> versions{};
};

/// The machine as training sees it.
struct Facts {
  std::string processor{};
  InstructionSet instruction_set = InstructionSet::sse;
  /// Hardware threads, and the cores that they belong to; 0 if the machine does not say.
  int online = 0;
  int cores = 0;
  Cpus cpus{};
  /// The number of threads that training is to use.
  int threads = 1;
  /// The average number of threads of the machine that wanted a CPU in the last minute; empty if it
  /// does not say.
  std::optional<double> load{};
  /// One of "always", "madvise" and "never"; empty if it cannot be seen.
  std::string huge_pages{};
  /// The governor of the CPU frequency and its driver; empty if they cannot be seen, as in virtual
  /// machines.
  std::string governor{};
  std::string frequency_driver{};
  /// The user's OPENBLAS_CORETYPE.
  std::string coretype{};
  std::string preloaded{};
  std::optional<TrainingProcess> training{};
  /// The reason why `training` is empty.
  std::string no_training{};
};

/// Gathers what can be seen without libtorch; /proc and /sys are read below `root`. Leaves
/// `training` and `no_training` empty.
[[nodiscard]] Facts gather_facts(const std::filesystem::path& root);

/// Facts about this process that can be found without libtorch: BLAS and its speed, malloc,
/// versions of libraries. Restricts OpenBLAS to the calling thread.
[[nodiscard]] TrainingProcess probe_this_process();

/// The text sent through the pipe between the program that trains and the one that asks it.
/// parse_probe() throws Error for text that probe_text() has not written.
[[nodiscard]] std::string probe_text(const TrainingProcess& process);
[[nodiscard]] TrainingProcess parse_probe(const std::string& text);

/// Runs a program and returns its output on stdout. Throws Error if it cannot be started, or does
/// not end with code 0.
[[nodiscard]] std::string output_of(const std::filesystem::path& program,
                                    const std::string& argument);

}  // namespace rubato::doctor
