#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <rubato/loop/optimizer.hpp>

namespace rubato {

/// The rates for one parameter tensor, after groups and rules have been applied.
struct LayerRates {
  /// The index of the tensor in the layout.
  std::size_t index = 0;
  /// The rate of the step for this tensor.
  double rate = 0;
  double weight_decay = 0;
  double momentum = 0;
  /// True if layer-wise rates (LARS) apply.
  bool layer_wise = true;
};

/// Returns the options of a group; groups beyond the list have default options.
[[nodiscard]] inline GroupOptions group_of(std::span<const GroupOptions> groups, std::size_t i) {
  return i < groups.size() ? groups[i] : GroupOptions();
}

/// Returns whether any parameter has a velocity.
[[nodiscard]] inline bool any_momentum(double momentum, std::span<const GroupOptions> groups) {
  return momentum != 0 || std::any_of(groups.begin(), groups.end(), [](const GroupOptions& group) {
           return group.momentum.value_or(0) != 0;
         });
}

/// Combines an optimizer's weight decay and momentum with the group's options and the rates, for a
/// tensor of that group.
[[nodiscard]] inline LayerRates rates_of_layer(std::size_t layer, const Rates& rates,
                                               const ParameterLayout& layout,
                                               const GroupOptions& group, double weight_decay,
                                               double momentum) {
  double rate = rates.update_rate * group.learning_rate_factor;
  if (!rates.group_factors.empty()) rate *= rates.group_factors[layout.layer_groups[layer]];
  if (!rates.layer_factors.empty() && group.layer_wise) rate *= rates.layer_factors[layer];
  return {.index = layer,
          .rate = rate,
          .weight_decay = group.weight_decay.value_or(weight_decay) * rates.weight_decay_factor,
          .momentum = group.momentum.value_or(momentum),
          .layer_wise = group.layer_wise};
}

}  // namespace rubato
