#pragma once

#include "base/machine/instruction_set.hpp"

namespace rubato {

/// The instruction set that dense networks are computed with in this process: the best of SSE,
/// AVX2 with FMA and AVX-512 that the CPU has. ATEN_CPU_CAPABILITY (`default`, `avx2`, `avx512`),
/// which holds libtorch to one, holds them to it, too; a value that is none of these is ignored, as
/// libtorch does.
///
/// Their bits depend on whether it has FMA, and on nothing else of it: they are the same with AVX2,
/// AVX-512 and NEON.
[[nodiscard]] InstructionSet dense_instruction_set();

}  // namespace rubato
