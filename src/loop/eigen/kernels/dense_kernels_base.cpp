// The instructions that every CPU has: SSE2 on x86-64, NEON with FMA on ARM.
#define RUBATO_DENSE_EIGEN rubato_eigen_base
#include "dense_kernels.inc"

namespace rubato::dense {

template <>
Kernels<float> base_kernels() {
  return kernels<float>();
}
template <>
Kernels<double> base_kernels() {
  return kernels<double>();
}

}  // namespace rubato::dense
