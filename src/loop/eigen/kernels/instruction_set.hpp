#pragma once

#include "base/machine/instruction_set.hpp"

namespace rubato {

/// The instruction set that dense networks are computed with in this process: the best of SSE,
/// AVX2 with FMA and AVX-512 that the CPU has. ATEN_CPU_CAPABILITY (`default`, `avx2`, `avx512`),
/// which holds libtorch to one, holds them to it, too; a value that is none of these is ignored, as
/// libtorch does.
///
/// Their bits are a function of it, so with portable kernels (use_right_kernels(), which sets the
/// variable to avx2) they are the same on every CPU with AVX2 and FMA.
[[nodiscard]] InstructionSet dense_instruction_set();

}  // namespace rubato
