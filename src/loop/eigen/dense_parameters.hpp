#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>

#include "base/machine/instruction_set.hpp"

namespace rubato {

/// The alignment in bytes that suits the vectors of every instruction set.
inline constexpr std::size_t kVectorAlignment = 64;

/// Values that begin at a multiple of 64 bytes; initially 0.
///
/// T is a number.
template <class T>
class AlignedValues {
 public:
  AlignedValues() = default;
  explicit AlignedValues(std::size_t size)
      : memory_(static_cast<T*>(::operator new[](size * sizeof(T), kAlignment))), size_(size) {
    std::fill_n(memory_.get(), size, T{0});
  }

  [[nodiscard]] T* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<T> values() const { return {memory_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{kVectorAlignment};
  struct FreeMemory {
    void operator()(T* memory) const { ::operator delete[](memory, kAlignment); }
  };

  std::unique_ptr<T[], FreeMemory> memory_;
  std::size_t size_ = 0;
};

struct ParameterShape {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// Parameters that are all in training, one after the other in memory of their own, initially 0.
/// Each begins at a multiple of 64 bytes, and the padding between them stays 0.
///
/// T is float or double.
template <class T>
class FlatParameters {
 public:
  explicit FlatParameters(const std::vector<ParameterShape>& shapes) {
    constexpr std::size_t kStep = kVectorAlignment / sizeof(T);
    std::size_t end = 0;
    for (const auto& [name, shape] : shapes) {
      begins_.push_back(end);
      arrays_.push_back({.name = name, .type = element_type_of<T>(), .shape = shape});
      end += (arrays_.back().size() + kStep - 1) / kStep * kStep;
      trained_.push_back({.array = {}, .end = end});
    }
    memory_ = AlignedValues<T>(end);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      arrays_[i].data = memory_.data() + begins_[i];
      trained_[i].array = arrays_[i];
    }
  }

  [[nodiscard]] std::span<T> values() const { return memory_.values(); }
  /// Sets the padding to 0 in values that are laid out as the parameters, such as a gradient.
  void clear_padding(std::span<T> values) const {
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      const std::size_t end = begins_[i] + arrays_[i].size();
      std::ranges::fill(values.subspan(end, trained_[i].end - end), T{0});
    }
  }
  /// The index at which the array begins.
  [[nodiscard]] std::size_t begin(std::size_t array) const { return begins_[array]; }
  [[nodiscard]] const std::vector<NamedArray>& arrays() const { return arrays_; }
  [[nodiscard]] const std::vector<TrainedArray>& trained() const { return trained_; }

 private:
  std::vector<std::size_t> begins_;
  std::vector<NamedArray> arrays_;
  std::vector<TrainedArray> trained_;
  AlignedValues<T> memory_;
};

/// Returns the instruction set with which this process computes dense networks: the best of SSE,
/// AVX2 with FMA and AVX-512 that the CPU has. ATEN_CPU_CAPABILITY (`default`, `avx2`, `avx512`),
/// which limits libtorch, limits it, too; other values are ignored, as by libtorch.
///
/// The bits of the networks depend only on whether it has FMA: they are the same with AVX2, AVX-512
/// and NEON.
[[nodiscard]] InstructionSet dense_instruction_set();

/// Draws the initial values of torch::nn::Linear, bit for bit, layer by layer as modules are made
/// after torch::manual_seed(seed).
///
/// libtorch draws x in [0, 1), with 24 bits for float and 53 for double, by MT19937, which takes
/// the lower 32 bits of the seed, and computes x (to - from) + from: with one rounding if it uses
/// AVX2 and FMA, otherwise with two. So the values depend on the instruction set.
class LinearInitialValues {
 public:
  LinearInitialValues(std::uint64_t seed, InstructionSet set)
      : generator_(static_cast<std::uint32_t>(seed)), fused_(has_fma(set)) {}

  /// Draws the weights [outputs, inputs], and then the biases [outputs], of a layer. T is float or
  /// double.
  template <class T>
  void draw(std::span<T> weights, std::span<T> biases, std::int64_t inputs);

 private:
  template <class T>
  void draw_uniform(std::span<T> values, double bound);
  template <class T>
  T draw_unit();

  std::mt19937 generator_;
  bool fused_;
};

extern template void LinearInitialValues::draw(std::span<float>, std::span<float>, std::int64_t);
extern template void LinearInitialValues::draw(std::span<double>, std::span<double>, std::int64_t);

}  // namespace rubato
