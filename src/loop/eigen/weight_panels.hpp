#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <rubato/loop/workers.hpp>

#include "dense_pass.hpp"
#include "loop/eigen/kernels/aligned_values.hpp"

namespace rubato {

/// The weights of a dense network in the layout of its products, packed once for all passes of a
/// step.
///
/// T is float or double.
template <class T>
class WeightPanels {
 public:
  /// Packs the model's current weights, with all threads; allocates on the first call.
  void pack(const DenseModel<T>& model, Workers& workers);
  /// The panels of each layer, as of the last pack().
  [[nodiscard]] std::span<const dense::Panels<T>> panels() const { return panels_; }

  /// The size of all panels.
  [[nodiscard]] static std::size_t bytes(const DenseModel<T>& model);

 private:
  // A part of a panel, which one thread packs at a time.
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
