#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>

#include "loop/eigen/kernels/aligned_values.hpp"

namespace rubato {

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

}  // namespace rubato
