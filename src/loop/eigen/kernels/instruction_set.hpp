#pragma once

#include "base/machine/instruction_set.hpp"

namespace rubato {

/// Returns the instruction set with which this process computes dense networks: the best of SSE,
/// AVX2 with FMA and AVX-512 that the CPU has. ATEN_CPU_CAPABILITY (`default`, `avx2`, `avx512`),
/// which limits libtorch, limits it, too; other values are ignored, as by libtorch.
///
/// The bits of the networks depend only on whether it has FMA: they are the same with AVX2, AVX-512
/// and NEON.
[[nodiscard]] InstructionSet dense_instruction_set();

}  // namespace rubato
