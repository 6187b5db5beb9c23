#ifdef __x86_64__
#include "direct_kernels.inc"
#include "winograd_kernels.inc"

namespace rubato::lane_convolution {

Kernels avx512_kernels() {
  return {.forward_sizes = forward_sizes,
          .forward = forward,
          .backward_sizes = backward_sizes,
          .backward = backward};
}

Kernels avx512_winograd_kernels() {
  return {.forward_sizes = winograd::forward_sizes,
          .forward = winograd::forward,
          .backward_sizes = winograd::backward_sizes,
          .backward = winograd::backward};
}

}  // namespace rubato::lane_convolution
#else
#include "lane_convolution.hpp"

// Never called if cpu_instruction_set() says that there are no such vectors.
rubato::lane_convolution::Kernels rubato::lane_convolution::avx512_kernels() {
  return {};
}
rubato::lane_convolution::Kernels rubato::lane_convolution::avx512_winograd_kernels() {
  return {};
}
#endif
