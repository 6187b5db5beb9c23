#pragma once

// Batch normalisation of float32 values in training, and its gradient. With m values of a channel,
//
//   mean       = sum of x / m
//   variance   = sum of (x - mean)^2 / m
//   output     = x alpha + beta, where alpha = weight / sqrt(variance + eps), beta = bias - mean
//   alpha bias grad. = sum of g weight gr. = sum of g (x - mean) / sqrt(variance + eps) input gr.
//   = (g - bias grad. / m - (x - mean) weight grad. / (m sqrt(variance + eps))) alpha
//
// Ioffe and Szegedy, "Batch Normalization", 2015. Sums are taken in float over blocks of at most
// 1024 values (128 with channels last) and in double over the blocks, in an order that depends on
// the shape only: the same bits on every CPU.

#include <cstddef>

namespace rubato::batch_norm {

// Values of channel c: at [n, c, k], or with channels last [n, k, c], for n < outer and k < inner.
struct Shape {
  std::ptrdiff_t outer = 0;
  std::ptrdiff_t channels = 0;
  std::ptrdiff_t inner = 0;
  bool channels_last = false;

  [[nodiscard]] std::ptrdiff_t of_channel() const { return outer * inner; }
};

// Of each channel, into arrays of as many doubles.
void mean_and_variance(const Shape& shape, const float* x, double* mean, double* variance);

// output = x alpha + beta, with as many of these as channels.
void scale_and_shift(const Shape& shape, const float* x, const float* alpha, const float* beta,
                     float* output);

// Both of the following are for channels last. Of each channel: the sums of g and of g (x - mean).
void gradient_sums(const Shape& shape, const float* g, const float* x, const float* mean,
                   double* sum, double* dot);

// input gradient = (g - shift - (x - mean) slope) alpha, with as many of these as channels.
struct GradientFactors {
  const float* shift = nullptr;
  const float* mean = nullptr;
  const float* slope = nullptr;
  const float* alpha = nullptr;
};
void input_gradient(const Shape& shape, const float* g, const float* x,
                    const GradientFactors& factors, float* to);

}  // namespace rubato::batch_norm
