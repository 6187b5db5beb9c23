#pragma once

#include <cstddef>

namespace rubato_bench {

// x [samples, inputs] through a hidden layer with relu to z [samples, outputs], and back from z as
// if it were the derivatives; all dense, row by row. The gradients are added to.
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

// By Eigen's own products, compiled as rubato's kernels are.
void eigen_step_base(const Step& step);
void eigen_step_avx2(const Step& step);

}  // namespace rubato_bench
