#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "instruction_set.hpp"

namespace rubato {

/// The OpenBLAS of a process.
///
/// One that was built for many CPUs has a set of kernels for each "core", as it calls them, and
/// takes one when it is loaded: by the model of the CPU, or by OPENBLAS_CORETYPE. One that is older
/// than the CPU may not know the model, and takes its oldest kernels.
struct OpenBlas {
  /// The core whose kernels it took: "Haswell".
  std::string core;
  /// Version and options, as it writes them.
  std::string config;

  /// Whether it was built for many CPUs.
  [[nodiscard]] bool chooses() const { return config.find("DYNAMIC_ARCH") != std::string::npos; }
};

/// That of this process, where it computes with OpenBLAS.
[[nodiscard]] std::optional<OpenBlas> loaded_openblas();

/// Lets OpenBLAS allocate what `count` threads that call it at a time need, 32 to 128 MiB of
/// addresses each, which it keeps. Where it cannot have that, it asks again without end (0.3.21),
/// so it is to have it before memory is short. Does nothing where there is no OpenBLAS, or not such
/// a one.
void reserve_openblas_buffers(int count);

/// The instruction set of the kernels of `core`, in upper or lower case; empty for one that is not
/// known here.
[[nodiscard]] std::optional<InstructionSet> openblas_instruction_set(std::string_view core);

/// The core that has kernels for `set` and needs nothing beyond it, in every OpenBLAS since 0.3.0;
/// empty for `sse`, for which OpenBLAS may choose itself.
[[nodiscard]] std::string_view openblas_core(InstructionSet set);

/// The core that a CPU with `cpu` should have where `openblas` took kernels of a lesser instruction
/// set; empty where it took the right ones, has no others, or took what is not known here.
[[nodiscard]] std::string_view better_openblas_core(const OpenBlas& openblas, InstructionSet cpu);

}  // namespace rubato
