#include "lane_kernels.inc"

namespace rubato::lane_convolution {

Kernels avx2_kernels() {
  return kernels();
}
Kernels avx2_winograd_kernels() {
  return winograd::kernels();
}

}  // namespace rubato::lane_convolution
