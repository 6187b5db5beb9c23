#pragma once

// Convolution of float32 images in two dimensions with one image in each lane of a vector: no lane
// is wasted, whatever the numbers of channels and pixels are. Libraries that put channels or pixels
// into lanes lose most with few channels (1 to 16) and images of odd sizes.
//
//   output[n, o, y, x]       = bias[o] + sum over c, i, j of weight[o, c, i, j] input[n, c, y', x']
//   input gradient           = sum over o, i, j of weight[o, c, i, j] gradient[n, o, y, x]
//   weight gradient[o,c,i,j] = sum over n, y, x of gradient[n, o, y, x] input[n, c, y', x']
//   bias gradient[o]         = sum over n, y, x of gradient[n, o, y, x]
//     where y' = y stride + i dilation - padding, x' likewise; outside of the image input is 0
//
// Every value is computed in one order, whatever the instruction set, which gives the same bits on
// every CPU.
//
// The direct kernels are chains of fused multiply-adds: of outputs over c, i, j; of input gradients
// over o, i, j; of weight gradients in 16 lanes, each over every 16th image and over y, x, and then
// by a fixed tree.
//
// Winograd's method (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S.
// Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016) is for kernels of 3x3: the
// outputs are cut into tiles of 2x2, each of which takes a patch of 4x4 inputs d, and
//
//   outputs of a tile = A' (sum over c of (G w G') * (B' d B)) A    (* is elementwise)
//   weight gradient   = G' (sum over n and tiles of (A g A') * (B' d B)) G
//
//        1  0 -1  0         1   0   0         1  0
//   B' = 0  1  1  0    G = .5  .5  .5    A =  1  1
//        0 -1  1  0        .5 -.5  .5         1 -1
//        0 -1  0  1         0   0   1         0  1
//
// which takes 16 products instead of 36. The bias is added last. Input gradients are outputs of
// kernels turned around. Rounding errors are of the size of those of a direct sum: B' and A only
// add.

#include <cstddef>

#include "axis.hpp"

namespace rubato::lane_convolution {

// Strides of an image: the value of channel c in row y and column x lies c channel + y row + x
// column behind the first value.
struct Layout {
  std::ptrdiff_t channel = 0;
  std::ptrdiff_t row = 0;
  std::ptrdiff_t column = 0;
};

// Sizes in values. Images are dense, their values contiguous (channel, row, column) or channels
// last (row, column, channel); images follow each other without gaps.
struct Shape {
  std::ptrdiff_t images = 0;
  std::ptrdiff_t input_channels = 0;
  std::ptrdiff_t output_channels = 0;
  operators::Axis rows{};
  operators::Axis columns{};
  // Layout of inputs, outputs and their gradients.
  bool channels_last = false;
  // Strides of weight[o, c, i, j].
  std::ptrdiff_t weight_output = 0;
  std::ptrdiff_t weight_input = 0;
  std::ptrdiff_t weight_row = 0;
  std::ptrdiff_t weight_column = 0;
};

// Scratch memory of a call, aligned to 64 bytes.
struct Sizes {
  std::size_t floats = 0;
  std::size_t offsets = 0;
};
struct Scratch {
  float* floats = nullptr;
  std::ptrdiff_t* offsets = nullptr;
};

struct ForwardCall {
  const float* input = nullptr;
  const float* weight = nullptr;
  // The bias may be null.
  const float* bias = nullptr;
  float* output = nullptr;
};

// Gradients that are not needed are null; that of the weight has the weight's strides.
struct BackwardCall {
  const float* gradient = nullptr;
  const float* input = nullptr;
  const float* weight = nullptr;
  float* input_gradient = nullptr;
  float* weight_gradient = nullptr;
  float* bias_gradient = nullptr;
};

// Kernels of one instruction set.
struct Kernels {
  Sizes (*forward_sizes)(const Shape&) = nullptr;
  void (*forward)(const Shape&, const ForwardCall&, const Scratch&) = nullptr;
  Sizes (*backward_sizes)(const Shape&) = nullptr;
  void (*backward)(const Shape&, const BackwardCall&, const Scratch&) = nullptr;
};

Kernels avx2_kernels();
Kernels avx512_kernels();

// Kernels for weights of 3x3 without strides and dilation, and with a padding of at most 2.
Kernels avx2_winograd_kernels();
Kernels avx512_winograd_kernels();

}  // namespace rubato::lane_convolution
