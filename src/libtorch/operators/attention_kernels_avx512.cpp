#include "attention_kernels.inc"

namespace rubato::attention {

// On other CPUs than x86-64 they are those of base_kernels().
Kernels avx512_kernels() {
  return kernels();
}

}  // namespace rubato::attention
