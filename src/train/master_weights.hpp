#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include <rubato/model/half.hpp>
#include <rubato/runtime/workers.hpp>

namespace rubato {

/// The weights of training in float16: between steps the shared parameters are the float32 master
/// weights, which updates, evaluations and checkpoints see; while the minibatches of a step are
/// computed they are rounded to float16.
///
/// T is float or double; only float is rounded.
template <class T>
class MasterWeights {
 public:
  /// While it lives the parameters are rounded.
  class Rounded {
   public:
    Rounded(MasterWeights& master, std::span<T> parameters, Workers& workers)
        : master_(master.weights_), parameters_(parameters) {
      master_.resize(parameters_.size());
      workers.for_each_range(parameters_.size(), [&](std::size_t begin, std::size_t end) {
        const std::span<T> part = parameters_.subspan(begin, end - begin);
        std::copy(part.begin(), part.end(), master_.data() + begin);
        if constexpr (std::is_same_v<T, float>) round_to_half(part);
      });
    }
    ~Rounded() { std::copy(master_.begin(), master_.end(), parameters_.begin()); }
    Rounded(const Rounded&) = delete;
    Rounded& operator=(const Rounded&) = delete;

   private:
    std::vector<T>& master_;
    std::span<T> parameters_;
  };

 private:
  std::vector<T> weights_;
};

}  // namespace rubato
