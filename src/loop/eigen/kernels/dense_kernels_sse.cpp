// What every CPU has: SSE2 on x86-64.
#define RUBATO_DENSE_EIGEN rubato_eigen_sse
#include "dense_kernels.inc"

namespace rubato::dense {

template <>
Kernels<float> sse_kernels() {
  return kernels<float>();
}
template <>
Kernels<double> sse_kernels() {
  return kernels<double>();
}

}  // namespace rubato::dense
