#ifdef __x86_64__
#define RUBATO_DENSE_EIGEN rubato_eigen_avx512
#include "dense_kernels.inc"

namespace rubato::dense {

template <>
Kernels<float> avx512_kernels() {
  return kernels<float>();
}
template <>
Kernels<double> avx512_kernels() {
  return kernels<double>();
}

}  // namespace rubato::dense
#else
#include "dense_kernels.hpp"

namespace rubato::dense {

// Never called, because cpu_instruction_set() then reports no such vectors.
template <>
Kernels<float> avx512_kernels() {
  return {};
}
template <>
Kernels<double> avx512_kernels() {
  return {};
}

}  // namespace rubato::dense
#endif
