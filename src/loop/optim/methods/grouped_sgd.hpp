#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include <rubato/loop/optimizer.hpp>

#include "layer_rates.hpp"
#include "numbers/collective/tree_sum.hpp"
#include "ranges.hpp"

namespace rubato {

/// Returns the coefficients of a tensor. In MXNet's form the velocity contains the rate, so the
/// step itself has none.
template <class T>
[[nodiscard]] SgdCoefficients<T> coefficients_of(const LayerRates& layer, const Update<T>& update,
                                                 MomentumForm form, bool nesterov) {
  const auto momentum = static_cast<T>(layer.momentum);
  if (form == MomentumForm::pytorch) {
    return {.gradient_factor = update.gradient_factor,
            .learning_rate = static_cast<T>(layer.rate),
            .momentum = momentum,
            .weight_decay = static_cast<T>(layer.weight_decay),
            .nesterov = nesterov,
            .clip = update.clip};
  }
  // An infinite bound must stay infinite, although the rate may be 0.
  const bool bounded = std::isfinite(update.clip);
  return {
      .gradient_factor = static_cast<T>(layer.rate * static_cast<double>(update.gradient_factor)),
      .learning_rate = T{1},
      .momentum = momentum,
      .weight_decay = static_cast<T>(layer.rate * layer.weight_decay),
      .nesterov = nesterov,
      .clip =
          bounded ? static_cast<T>(layer.rate * static_cast<double>(update.clip)) : update.clip};
}

/// Takes one SGD step of every range, divided among the threads. The ranges cover all parameters.
template <class T>
void step_ranges(const Update<T>& update, std::span<T> velocity,
                 std::span<const SgdRange<T>> ranges, Workers& workers) {
  workers.for_each_range(update.parameters.size(), [&](std::size_t begin, std::size_t end) {
    const T* const gradient = update.gradient_sum.data();
    tree_sum_sgd({&gradient, 1}, begin, update.parameters.subspan(begin, end - begin),
                 velocity.empty() ? velocity : velocity.subspan(begin, end - begin), ranges);
  });
}

}  // namespace rubato
