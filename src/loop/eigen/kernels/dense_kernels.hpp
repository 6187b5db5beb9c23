#pragma once

// Forward and backward of a fully connected network on some samples, compiled for several
// instruction sets. With X_0 the inputs, one sample in a row, and a the activation:
//
//   Z_l = X_{l-1} W_l^T + b_l     X_l = a(Z_l), of the last layer X_l = Z_l
//   dW_l = dZ_l^T X_{l-1}         db_l = the sum of the rows of dZ_l
//   dZ_{l-1} = (dZ_l W_l) * a'(Z_{l-1}), where a' is a function of X_{l-1}: 1 - x^2, or x > 0
//
// Plain numbers and pointers: what the files for one instruction set share with the others are
// these declarations and nothing that the linker could take from the wrong one.

#include <cstddef>
#include <cstdint>

namespace rubato::dense {

struct Layer {
  std::ptrdiff_t inputs = 0;
  std::ptrdiff_t outputs = 0;
  // Where the weights [outputs, inputs] and the biases [outputs] begin among the parameters and in
  // the gradient.
  std::size_t weights = 0;
  std::size_t biases = 0;
};

// Values from one row of activations to the next: the row is padded with zeros, so that every row
// consists of whole vectors of any instruction set and begins at a multiple of 64 bytes.
inline constexpr std::ptrdiff_t kRowStep = 16;

// How products are cut: into parts that stay in the caches of the CPUs of the last ten years.
inline constexpr std::ptrdiff_t kBlockRows = 144;
inline constexpr std::ptrdiff_t kBlockColumns = 1024;
inline constexpr std::ptrdiff_t kBlockDepth = 264;
// Values of a copy of the parts in work.
inline constexpr std::ptrdiff_t kPackedValues = (kBlockRows + kBlockColumns) * kBlockDepth;

// Samples of the minibatches that are computed at once, and of one of those, at most.
inline constexpr std::ptrdiff_t kSamplesAtOnce = 1024;
inline constexpr std::ptrdiff_t kMinibatchAtOnce = kBlockDepth;

// The weights of a layer as products take them, packed once for many passes. The first layer has
// none for the derivatives by its inputs.
template <class T>
struct Panels {
  // panel_values() each.
  T* forward = nullptr;
  T* backward = nullptr;
};

// A network on the samples of one or several minibatches, one after the other. All pointers but
// `inputs` are multiples of 64 bytes.
template <class T>
struct Batch {
  const Layer* layers = nullptr;
  std::ptrdiff_t layer_count = 0;
  bool tanh = false;
  const T* parameters = nullptr;
  // Of each layer, packed from these parameters; null where each call packs what it needs.
  const Panels<T>* panels = nullptr;
  // Of all minibatches, which have equally many.
  std::ptrdiff_t samples = 0;
  std::ptrdiff_t minibatches = 1;
  // [samples, inputs of the first layer], dense.
  const T* inputs = nullptr;
  // Of each layer, [samples, outputs] in padded rows; the padding is 0 before and after each call.
  T* const* outputs = nullptr;
  // As large as the largest of them.
  T* scratch = nullptr;
  // kPackedValues.
  T* packed = nullptr;
};

template <class T>
struct Kernels {
  // Fills the outputs of all layers.
  void (*forward)(const Batch<T>& batch) = nullptr;
  // Return the mean loss of one minibatch, and put its derivatives by the outputs of the last layer
  // in their place. Targets are [samples, outputs], dense.
  double (*cross_entropy)(const Batch<T>& batch, const std::int64_t* classes) = nullptr;
  double (*squared_error)(const Batch<T>& batch, const T* targets) = nullptr;
  // Adds the gradients of the minibatches to `gradient`, which is laid out as the parameters and 0
  // before: each summed by itself, and their sums in the order of a SummationTree. Several have at
  // most kMinibatchAtOnce samples each, and kSamplesAtOnce together. Uses up the outputs.
  void (*backward)(const Batch<T>& batch, T* gradient) = nullptr;

  // Of a panel: how many values it has, and in how many parts it is packed, which may be done at
  // the same time.
  std::ptrdiff_t (*panel_values)(const Layer& layer, bool backward) = nullptr;
  std::ptrdiff_t (*panel_parts)(const Layer& layer, bool backward) = nullptr;
  void (*pack_panel)(const Layer& layer, const T* parameters, bool backward, std::ptrdiff_t part,
                     T* panel) = nullptr;
};

// Only to be called where the CPU has the instructions.
template <class T>
[[nodiscard]] Kernels<T> base_kernels();
template <class T>
[[nodiscard]] Kernels<T> avx2_kernels();
template <class T>
[[nodiscard]] Kernels<T> avx512_kernels();

template <>
Kernels<float> base_kernels();
template <>
Kernels<double> base_kernels();
template <>
Kernels<float> avx2_kernels();
template <>
Kernels<double> avx2_kernels();
template <>
Kernels<float> avx512_kernels();
template <>
Kernels<double> avx512_kernels();

}  // namespace rubato::dense
