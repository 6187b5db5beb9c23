#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include <rubato/base/parse.hpp>

namespace rubato {

/// The CPUs (hardware threads) that a process may use.
struct Cpus {
  /// CPUs in the affinity mask of the process, at least 1.
  int allowed = 1;
  /// CPU seconds per second that its control groups (version 1 or 2) grant; empty if unlimited.
  std::optional<double> quota;

  /// The number of threads that use all of this: the quota rounded up, but at most `allowed`, and
  /// at least 1.
  [[nodiscard]] int usable() const;
};

/// The CPUs of this process; /proc and /sys are read below `root`.
[[nodiscard]] Cpus cpus(const std::filesystem::path& root = "/");

/// The kernels that ATen, oneDNN and OpenBLAS compute with.
enum class Kernels {
  /// The fastest that the CPU supports; another CPU may give other bits.
  native,
  /// The AVX2 and FMA kernels on every CPU: the same bits wherever the libraries have the same
  /// versions.
  portable,
};

inline constexpr std::array<Choice<Kernels>, 2> kKernels{
    {{Kernels::native, "native"}, {Kernels::portable, "portable"}}};

/// Makes the libraries compute with `kernels`; to be called first in main(), with its argv. The
/// libraries choose their kernels when they are loaded, from the CPU and from environment
/// variables. If their choice is wrong, this function sets the variables and starts the program
/// again, once, with the same arguments; then it does not return.
///
/// `native` corrects OpenBLAS if it chose kernels for a lesser instruction set than the CPU has,
/// unless the user set OPENBLAS_CORETYPE; if that is impossible, the program continues with what it
/// has. `portable` overrides the user's variables; it throws Error if the CPU lacks AVX2 or FMA, or
/// if the program cannot be started again.
///
/// A restart repeats everything that main() or static objects did before the call.
void use_right_kernels(char* const* argv, Kernels kernels = Kernels::native);

/// The change that use_right_kernels() made to this process.
struct KernelStart {
  Kernels kernels = Kernels::native;
  /// The core that OpenBLAS had chosen kernels for; empty without OpenBLAS.
  std::string openblas_before;
};
/// The change; empty if the process was not started again.
[[nodiscard]] std::optional<KernelStart> kernel_start();

/// One sentence for the user: "OpenBLAS takes its SkylakeX kernels ...".
[[nodiscard]] std::string describe(const KernelStart& start);

}  // namespace rubato
