#pragma once

#include <optional>
#include <string>
#include <string_view>

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

}  // namespace rubato
