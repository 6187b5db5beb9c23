#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <rubato/loop/workers.hpp>

#include "dense_pass.hpp"
#include "loop/eigen/kernels/aligned_values.hpp"

namespace rubato {

/// The weights of a dense network as its products take them, packed once for all passes of a step.
///
/// T is float or double.
template <class T>
class WeightPanels {
 public:
  /// Packs the weights of the model as they are, with all threads; allocates when it is called
  /// first.
  void pack(const DenseModel<T>& model, Workers& workers);
  /// Of each layer, since the last pack().
  [[nodiscard]] std::span<const dense::Panels<T>> panels() const { return panels_; }

  /// What they take.
  [[nodiscard]] static std::size_t bytes(const DenseModel<T>& model);

 private:
  // What one thread packs at a time.
  struct Part {
    std::size_t layer = 0;
    bool backward = false;
    std::ptrdiff_t number = 0;
  };

  void allocate(const DenseModel<T>& model);

  std::vector<AlignedValues<T>> memory_{};
  std::vector<dense::Panels<T>> panels_{};
  std::vector<Part> parts_{};
};

extern template class WeightPanels<float>;
extern template class WeightPanels<double>;

}  // namespace rubato
