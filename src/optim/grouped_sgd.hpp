#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/optim/flat_optimizer.hpp>

#include "collective/tree_sum.hpp"
#include "optim/layer_rates.hpp"

namespace rubato {

/// The coefficients of a tensor. In MXNet's form the velocity holds the rate, so that the step
/// itself has none.
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
  // A rate of 0 times no bound is none, either.
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

/// Whether any parameter has a velocity.
[[nodiscard]] inline bool any_momentum(double momentum, std::span<const GroupOptions> groups) {
  return momentum != 0 || std::any_of(groups.begin(), groups.end(), [](const GroupOptions& group) {
           return group.momentum.value_or(0) != 0;
         });
}

/// Appends a tensor's range, or makes the last one longer where nothing differs.
template <class T>
void append_range(std::vector<SgdRange<T>>& ranges, std::size_t end,
                  const SgdCoefficients<T>& coefficients) {
  if (!ranges.empty() && ranges.back().coefficients == coefficients) {
    ranges.back().end = end;
  } else {
    ranges.push_back({.end = end, .coefficients = coefficients});
  }
}

/// One SGD step of every range, shared out over the threads.
template <class T>
void step_ranges(const Update<T>& update, std::span<T> velocity,
                 std::span<const SgdRange<T>> ranges, Workers& workers) {
  const std::size_t covered = ranges.empty() ? 0 : ranges.back().end;
  if (covered != update.parameters.size() || update.gradient_sum.size() < covered) {
    throw Error(
        fmt::format("an update of {} parameters has {} gradients, and the layout {} values; "
                    "accepted: as many of each",
                    update.parameters.size(), update.gradient_sum.size(), covered));
  }
  workers.for_each_range(update.parameters.size(), [&](std::size_t begin, std::size_t end) {
    const T* const gradient = update.gradient_sum.data();
    tree_sum_sgd({&gradient, 1}, begin, update.parameters.subspan(begin, end - begin),
                 velocity.empty() ? velocity : velocity.subspan(begin, end - begin), ranges);
  });
}

}  // namespace rubato
