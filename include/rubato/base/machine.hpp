#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include <rubato/base/parse.hpp>

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

/// Which kernels ATen, oneDNN and OpenBLAS compute with.
enum class Kernels {
  /// The best that the CPU has: the fastest, and other bits on another CPU.
  native,
  /// Those for AVX2 and FMA, on every CPU: the same bits wherever the libraries are of the same
  /// versions.
  portable,
};

inline constexpr std::array<Choice<Kernels>, 2> kKernels{
    {{Kernels::native, "native"}, {Kernels::portable, "portable"}}};

/// To be called first in main(), with its argv: makes the libraries compute with `kernels`. They
/// choose when they are loaded, by what they know of CPUs and by their environment variables, so
/// where another choice is needed this sets the variables and starts the program again, with the
/// same arguments, once; it does not return then.
///
/// `native` corrects OpenBLAS where it took kernels of a lesser instruction set than the CPU has,
/// unless the user set OPENBLAS_CORETYPE. Where that cannot be done, the program goes on with what
/// it has. `portable` replaces what the user set; throws Error where the CPU has no AVX2 and FMA,
/// or the program cannot be started again.
///
/// Whatever main() or a static object did before is done again.
void use_right_kernels(char* const* argv, Kernels kernels = Kernels::native);

/// What use_right_kernels() did to this process.
struct KernelStart {
  Kernels kernels = Kernels::native;
  /// The core whose kernels OpenBLAS took before; empty where there was no OpenBLAS.
  std::string openblas_before;
};
/// Empty in a process that was not started again.
[[nodiscard]] std::optional<KernelStart> kernel_start();

/// What happened, for the user, in one sentence: "OpenBLAS takes its SkylakeX kernels ...".
[[nodiscard]] std::string describe(const KernelStart& start);

}  // namespace rubato
