#include "lane_kernels.inc"

namespace rubato::lane_convolution {

Kernels avx512_kernels() {
  return kernels();
}
Kernels avx512_winograd_kernels() {
  return winograd::kernels();
}

}  // namespace rubato::lane_convolution
