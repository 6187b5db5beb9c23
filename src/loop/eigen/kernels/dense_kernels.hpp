#pragma once

// Forward and backward of a fully connected network on some samples, compiled for several
// instruction sets. With X_0 the inputs, one sample in a row, and a the activation:
//
//   Z_l = X_{l-1} W_l^T + b_l     X_l = a(Z_l); in the last layer X_l = Z_l
//   dW_l = dZ_l^T X_{l-1}         db_l = the sum of the rows of dZ_l
//   dZ_{l-1} = (dZ_l W_l) * a'(Z_{l-1}), where a' is a function of X_{l-1}: 1 - x^2, or x > 0
//
// The interface is plain numbers and pointers: the files for one instruction set share only these
// declarations with the others, and so nothing that the linker could take from the wrong file.

#include <cstddef>
#include <cstdint>

namespace rubato::dense {

struct Layer {
  std::ptrdiff_t inputs = 0;
  std::ptrdiff_t outputs = 0;
  // The indices at which the weights [outputs, inputs] and the biases [outputs] begin, both in the
  // parameters and in the gradient.
  std::size_t weights = 0;
  std::size_t biases = 0;
};

// The row stride of activations is a multiple of this many values: rows are padded with zeros, so
// that every row consists of whole vectors of any instruction set and begins at a multiple of 64
// bytes.
inline constexpr std::ptrdiff_t kRowStep = 16;

// Products are divided into parts of these sizes, which fit the caches of the CPUs of the last ten
// years.
inline constexpr std::ptrdiff_t kBlockRows = 144;
inline constexpr std::ptrdiff_t kBlockColumns = 1024;
inline constexpr std::ptrdiff_t kBlockDepth = 264;
// The number of values in a copy of the parts being multiplied.
inline constexpr std::ptrdiff_t kPackedValues = (kBlockRows + kBlockColumns) * kBlockDepth;

// The largest number of samples computed at once, and the largest minibatch of several in one pass.
inline constexpr std::ptrdiff_t kSamplesAtOnce = 1024;
inline constexpr std::ptrdiff_t kMinibatchAtOnce = kBlockDepth;

// The weights of a layer in the layout of products, packed once for many passes. The first layer
// has no backward panel, because its inputs need no derivatives.
template <class T>
struct Panels {
  // Each has panel_values() values.
  T* forward = nullptr;
  T* backward = nullptr;
};

// The samples of one or several minibatches, one after the other, with the network that computes
// them. All pointers except `inputs` are multiples of 64 bytes.
template <class T>
struct Batch {
  const Layer* layers = nullptr;
  std::ptrdiff_t layer_count = 0;
  bool tanh = false;
  const T* parameters = nullptr;
  // The panels of each layer, packed from these parameters; if null, each call packs the weights it
  // needs.
  const Panels<T>* panels = nullptr;
  // The total of all minibatches, which are of equal size.
  std::ptrdiff_t samples = 0;
  std::ptrdiff_t minibatches = 1;
  // [samples, inputs of the first layer], dense.
  const T* inputs = nullptr;
  // The outputs of each layer, [samples, outputs] in padded rows; the padding is 0 before and after
  // each call.
  T* const* outputs = nullptr;
  // Memory as large as the largest of the outputs.
  T* scratch = nullptr;
  // Memory for kPackedValues values.
  T* packed = nullptr;
};

template <class T>
struct Kernels {
  // Fills the outputs of all layers.
  void (*forward)(const Batch<T>& batch) = nullptr;
  // These return the mean loss of one minibatch, and replace the outputs of the last layer by the
  // loss's derivatives by them. Targets are [samples, outputs], dense.
  double (*cross_entropy)(const Batch<T>& batch, const std::int64_t* classes) = nullptr;
  double (*squared_error)(const Batch<T>& batch, const T* targets) = nullptr;
  // Writes the sum of the gradients of the minibatches to `gradient`, which is laid out like the
  // parameters, but not to its padding: each minibatch is summed separately, and their sums are
  // added in the order of a SummationTree. If there are several, each has at most kMinibatchAtOnce
  // samples, and all together kSamplesAtOnce. Overwrites the outputs.
  void (*backward)(const Batch<T>& batch, T* gradient) = nullptr;

  // The number of values in a panel, and the number of parts in which it is packed; parts may be
  // packed at the same time.
  std::ptrdiff_t (*panel_values)(const Layer& layer, bool backward) = nullptr;
  std::ptrdiff_t (*panel_parts)(const Layer& layer, bool backward) = nullptr;
  void (*pack_panel)(const Layer& layer, const T* parameters, bool backward, std::ptrdiff_t part,
                     T* panel) = nullptr;
};

// May be called only if the CPU has the instructions.
template <class T>
[[nodiscard]] Kernels<T> base_kernels();
template <>
Kernels<float> base_kernels();
template <>
Kernels<double> base_kernels();

#ifdef __x86_64__
template <class T>
[[nodiscard]] Kernels<T> avx2_kernels();
template <>
Kernels<float> avx2_kernels();
template <>
Kernels<double> avx2_kernels();

template <class T>
[[nodiscard]] Kernels<T> avx512_kernels();
template <>
Kernels<float> avx512_kernels();
template <>
Kernels<double> avx512_kernels();
#else
template <class T>
[[nodiscard]] Kernels<T> avx2_kernels() {
  return {};
}
template <class T>
[[nodiscard]] Kernels<T> avx512_kernels() {
  return {};
}
#endif

}  // namespace rubato::dense
