#pragma once

// Max pooling of float32 images in two dimensions, and its gradient.
//
//   output[n, c, y, x] = the largest input[n, c, y', x'] over the elements (i, j) of the window
//   index[n, c, y, x]  = its place, y' columns + x': the first of equal ones, the last NaN
//
// with y' = y stride + i dilation - padding, x' likewise, and both in the image.
//
// Values and indices are those of libtorch's kernels, to the last bit.

#include <cstddef>
#include <cstdint>

#include "axis.hpp"

namespace rubato::max_pool {

struct Shape {
  std::ptrdiff_t planes = 0;
  operators::Axis rows{};
  operators::Axis columns{};
};

// Both functions need a CPU with AVX2, and at most 2^31 - 1 values in a plane.
void forward(const Shape& shape, const float* input, float* output, std::int64_t* indices);

// Computes the gradient of the input if the windows are a partition in pairs.
void backward(const Shape& shape, const float* gradient, const std::int64_t* indices,
              float* input_gradient);

}  // namespace rubato::max_pool
