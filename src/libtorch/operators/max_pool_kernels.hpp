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

namespace rubato::max_pool {

struct Shape {
  std::ptrdiff_t planes = 0;
  std::ptrdiff_t input_rows = 0;
  std::ptrdiff_t input_columns = 0;
  std::ptrdiff_t output_rows = 0;
  std::ptrdiff_t output_columns = 0;
  std::ptrdiff_t kernel_rows = 0;
  std::ptrdiff_t kernel_columns = 0;
  std::ptrdiff_t row_stride = 1;
  std::ptrdiff_t column_stride = 1;
  std::ptrdiff_t row_padding = 0;
  std::ptrdiff_t column_padding = 0;
  std::ptrdiff_t row_dilation = 1;
  std::ptrdiff_t column_dilation = 1;
  // Values of an image are in the order (row, column, channel) instead of (channel, row, column).
  bool channels_last = false;

  // True if every input is in exactly one window, as with 2x2 windows of images of even sizes.
  [[nodiscard]] bool is_partition() const {
    return kernel_rows == row_stride && kernel_columns == column_stride && row_padding == 0 &&
           column_padding == 0 && row_dilation == 1 && column_dilation == 1 &&
           output_rows * row_stride == input_rows &&
           output_columns * column_stride == input_columns;
  }
};

// Both functions need a CPU with AVX2, and at most 2^31 - 1 values in a plane.
void forward(const Shape& shape, const float* input, float* output, std::int64_t* indices);

// Computes the gradient of the input if the windows are a partition in pairs.
void backward(const Shape& shape, const float* gradient, const std::int64_t* indices,
              float* input_gradient);

}  // namespace rubato::max_pool
