#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/workers.hpp>

#include "libtorch/model/half.hpp"

namespace rubato {

/// The weights of training in float16: between steps the shared parameters are the float32 master
/// weights, which updates and evaluations see; while the minibatches of a step are computed they
/// are rounded to float16, and only a state still gets the master weights (in_place_of()).
///
/// T is float or double; only float is rounded.
template <class T>
class MasterWeights {
 public:
  /// Rounds the parameters, until restore(). Does nothing if they are rounded already.
  void round(std::span<T> parameters, Workers& workers) {
    if (!parameters_.empty()) return;
    master_.resize(parameters.size());
    workers.for_each_range(parameters.size(), [&](std::size_t begin, std::size_t end) {
      round_part(parameters.subspan(begin, end - begin), begin);
    });
    parameters_ = parameters;
  }
  /// Rounds the parameters on the calling thread.
  void round(std::span<T> parameters) {
    if (!parameters_.empty()) return;
    master_.resize(parameters.size());
    round_part(parameters, 0);
    parameters_ = parameters;
  }
  /// Replaces arrays within the parameters, which are rounded now, by the master weights; other
  /// arrays stay as they are.
  [[nodiscard]] std::vector<NamedArray> in_place_of(std::vector<NamedArray> arrays) {
    for (NamedArray& array : arrays) {
      const auto* const data = static_cast<const T*>(array.data);
      const bool inside = std::greater_equal<>()(data, static_cast<const T*>(parameters_.data())) &&
                          std::less<>()(data, parameters_.data() + parameters_.size());
      if (inside) array.data = master_.data() + (data - parameters_.data());
    }
    return arrays;
  }
  [[nodiscard]] bool has_rounded() const { return !parameters_.empty(); }
  void restore() noexcept {
    if (parameters_.empty()) return;
    std::copy(master_.begin(), master_.end(), parameters_.begin());
    parameters_ = {};
  }

 private:
  void round_part(std::span<T> part, std::size_t begin) {
    std::copy(part.begin(), part.end(), master_.data() + begin);
    if constexpr (std::is_same_v<T, float>) round_to_half(part);
  }

  std::vector<T> master_;
  // The parameters while they are rounded; empty otherwise.
  std::span<T> parameters_;
};

}  // namespace rubato
