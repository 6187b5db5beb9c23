#pragma once

#include <cstddef>

namespace rubato_bench {

// A step of a network with a hidden layer and relu: forward from x [samples, inputs] to z [samples,
// outputs], and backward as if z were also the derivatives. All matrices are dense and row-major.
// The gradients are accumulated.
struct Step {
  std::ptrdiff_t samples;
  std::ptrdiff_t inputs;
  std::ptrdiff_t hidden;
  std::ptrdiff_t outputs;
  const float* x;
  const float* first_weights;
  const float* second_weights;
  float* h;
  float* z;
  float* by_h;
  float* first_gradient;
  float* second_gradient;
};

// The step with Eigen's own products, compiled with the same options as rubato's kernels.
void eigen_step_base(const Step& step);
void eigen_step_avx2(const Step& step);

}  // namespace rubato_bench
