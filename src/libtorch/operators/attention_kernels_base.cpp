// The instructions that every CPU has: SSE2 on x86-64, NEON with FMA on ARM.
#include "attention_kernels.inc"

namespace rubato::attention {

Kernels base_kernels() {
  return kernels();
}

}  // namespace rubato::attention
