#include "weight_panels.hpp"

#include <cstdint>
#include <iterator>

namespace rubato {

namespace {

// Calls take(layer, backward) for every layer forward, and for all but the first backward.
template <class T, class Take>
void for_each_panel(const DenseModel<T>& model, const Take& take) {
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    for (const bool backward : {false, true}) {
      if (!backward || layer > 0) take(layer, backward);
    }
  }
}

template <class T>
std::size_t values_of(const DenseModel<T>& model, std::size_t layer, bool backward) {
  return static_cast<std::size_t>(model.kernels.panel_values(model.layers[layer], backward));
}

}  // namespace

template <class T>
std::size_t WeightPanels<T>::bytes(const DenseModel<T>& model) {
  std::size_t values = 0;
  for_each_panel(model, [&](std::size_t layer, bool backward) {
    values += values_of(model, layer, backward);
  });
  return values * sizeof(T);
}

template <class T>
void WeightPanels<T>::allocate(const DenseModel<T>& model) {
  panels_.resize(model.layers.size());
  for_each_panel(model, [&](std::size_t layer, bool backward) {
    T* const panel = memory_.emplace_back(values_of(model, layer, backward)).data();
    (backward ? panels_[layer].backward : panels_[layer].forward) = panel;
    const std::ptrdiff_t parts = model.kernels.panel_parts(model.layers[layer], backward);
    for (std::ptrdiff_t number = 0; number < parts; ++number) {
      parts_.push_back({.layer = layer, .backward = backward, .number = number});
    }
  });
}

template <class T>
void WeightPanels<T>::pack(const DenseModel<T>& model, Workers& workers) {
  if (panels_.empty()) allocate(model);
  workers.for_each(std::ssize(parts_), [&](std::int64_t i, int) {
    const auto& [layer, backward, number] = parts_[static_cast<std::size_t>(i)];
    const dense::Panels<T>& of_layer = panels_[layer];
    model.kernels.pack_panel(model.layers[layer], model.parameters, backward, number,
                             backward ? of_layer.backward : of_layer.forward);
  });
}

template class WeightPanels<float>;
template class WeightPanels<double>;

}  // namespace rubato
