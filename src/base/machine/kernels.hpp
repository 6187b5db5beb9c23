#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/machine.hpp>

#include "instruction_set.hpp"

namespace rubato {

/// The OpenBLAS of a process.
///
/// A build for many CPUs has a set of kernels for each "core", as OpenBLAS calls them, and chooses
/// one when it is loaded, by the model of the CPU or by OPENBLAS_CORETYPE. If it is older than the
/// CPU, it may not know the model and then chooses its oldest kernels.
struct OpenBlas {
  /// The core whose kernels it chose: "Haswell".
  std::string core;
  /// Version and build options, in OpenBLAS's format.
  std::string config;

  /// True if it was built for many CPUs.
  [[nodiscard]] bool chooses() const { return config.find("DYNAMIC_ARCH") != std::string::npos; }
};

/// The OpenBLAS of this process; empty if it uses none.
[[nodiscard]] std::optional<OpenBlas> loaded_openblas();

/// Makes OpenBLAS allocate the buffers for `count` threads that call it at the same time; it keeps
/// them. Each takes 32 to 128 MiB of addresses. OpenBLAS 0.3.21 retries without end if such an
/// allocation fails, so this must happen before memory is short. Does nothing without OpenBLAS or
/// without its function for this.
void reserve_openblas_buffers(int count);

/// The instruction set of the kernels of `core`, in any case of letters; empty for an unknown core.
[[nodiscard]] std::optional<InstructionSet> openblas_instruction_set(std::string_view core);

/// The core that has kernels for `set` and needs nothing beyond it, in every OpenBLAS since 0.3.0;
/// empty for `neon` and `sse`, for which OpenBLAS may choose itself.
[[nodiscard]] std::string_view openblas_core(InstructionSet set);

/// The core that `openblas` should have chosen on a CPU with `cpu`, if it chose kernels of a lesser
/// instruction set; empty if its choice is right or unknown here, or if it has no other kernels.
[[nodiscard]] std::string_view better_openblas_core(const OpenBlas& openblas, InstructionSet cpu);

/// Names and values of environment variables.
using Variables = std::vector<std::pair<std::string, std::string>>;
/// Reads the value of an environment variable; empty if it is not set.
using ReadVariable = std::function<std::string(const std::string& name)>;

/// The variables to change before a process can compute with `kernels` on a CPU with `cpu`;
/// `openblas` is the process's present one. Throws Error if the CPU cannot compute with them.
[[nodiscard]] Variables variables_to_set(Kernels kernels, InstructionSet cpu,
                                         const std::optional<OpenBlas>& openblas,
                                         const ReadVariable& read);

/// Removes the variables by which users bind OpenMP's threads to CPUs; to be called first in
/// main(), before there are threads. Training has no such threads, but when libtorch is loaded, its
/// OpenMP binds the thread that loads it, and so all threads that this one starts later. The
/// programs that this one starts or becomes load it.
void ignore_openmp_binding();

/// A message about the variable that has bound the process to `allowed` of the `online` CPUs; empty
/// if it may use them all, or none of the variables is set.
[[nodiscard]] std::optional<std::string> openmp_binding(int allowed, int online,
                                                        const ReadVariable& read);
/// Like the function above, for this process.
[[nodiscard]] std::optional<std::string> openmp_binding();

}  // namespace rubato
