#pragma once

// Batch normalisation of float32 values in training, and its gradient. With m values of a channel,
//
//   mean            = sum of x / m
//   variance        = sum of (x - mean)^2 / m
//   output          = x alpha + beta
//   bias gradient   = sum of g
//   weight gradient = sum of g (x - mean) / sqrt(variance + eps)
//   input gradient  = (g - bias gradient / m
//                      - (x - mean) weight gradient / (m sqrt(variance + eps))) alpha
//     where alpha = weight / sqrt(variance + eps) and beta = bias - mean alpha
//
// Ioffe and Szegedy, "Batch Normalization", 2015. Sums are taken in float over blocks of at most
// 1024 values (128 with channels last) and in double over the blocks, in an order that depends on
// the shape only: the same bits on every CPU.

#include <cstddef>

namespace rubato::batch_norm {

// Values of channel c are at [n, c, k], or with channels last at [n, k, c], for n < outer and k <
// inner.
struct Shape {
  std::ptrdiff_t outer = 0;
  std::ptrdiff_t channels = 0;
  std::ptrdiff_t inner = 0;
  bool channels_last = false;

  [[nodiscard]] std::ptrdiff_t of_channel() const { return outer * inner; }
};

// Writes mean and variance of each channel into arrays of as many doubles.
void mean_and_variance(const Shape& shape, const float* x, double* mean, double* variance);

// Computes output = x alpha + beta, with one alpha and one beta for each channel.
void scale_and_shift(const Shape& shape, const float* x, const float* alpha, const float* beta,
                     float* output);

// Both functions below need channels last. This one sums g and g (x - mean) for each channel.
void gradient_sums(const Shape& shape, const float* g, const float* x, const float* mean,
                   double* sum, double* dot);

// Factors of input gradient = (g - shift - (x - mean) slope) alpha, one of each for each channel.
struct GradientFactors {
  const float* shift = nullptr;
  const float* mean = nullptr;
  const float* slope = nullptr;
  const float* alpha = nullptr;
};
void input_gradient(const Shape& shape, const float* g, const float* x,
                    const GradientFactors& factors, float* to);

}  // namespace rubato::batch_norm
