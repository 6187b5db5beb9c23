#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/optimizer.hpp>

#include "layer_rates.hpp"
#include "numbers/collective/coefficient_range.hpp"

namespace rubato {

/// Appends a tensor's range, or makes the last one longer where nothing differs.
template <class Coefficients>
void append_range(std::vector<CoefficientRange<Coefficients>>& ranges, std::size_t end,
                  const Coefficients& coefficients) {
  if (!ranges.empty() && ranges.back().coefficients == coefficients) {
    ranges.back().end = end;
  } else {
    ranges.push_back({.end = end, .coefficients = coefficients});
  }
}

/// Throws Error unless the update is of that many parameters, and has a gradient for each.
template <class T>
void require_size(const Update<T>& update, std::size_t size) {
  if (size == update.parameters.size() && update.gradient_sum.size() >= size) return;
  throw Error(
      fmt::format("an update of {} parameters has {} gradients, and the layout {} values; "
                  "accepted: as many of each",
                  update.parameters.size(), update.gradient_sum.size(), size));
}

/// The parameter tensors of an optimizer and the options of their groups: in each step, what every
/// parameter is updated with.
template <class Coefficients>
class LayerRanges {
 public:
  /// `weight_decay` and `momentum` are those of groups without their own. Groups beyond the list
  /// have no options of their own.
  LayerRanges(ParameterLayout layout, std::vector<GroupOptions> groups, double weight_decay,
              double momentum)
      : layout_(std::move(layout)),
        groups_(std::move(groups)),
        weight_decay_(weight_decay),
        momentum_(momentum) {
    ranges_.reserve(layout_.layers());
  }

  /// The number of parameters, padding included.
  [[nodiscard]] std::size_t size() const { return layout_.size(); }
  [[nodiscard]] std::size_t layers() const { return layout_.layers(); }
  /// Whether any parameter has a velocity.
  [[nodiscard]] bool any_momentum() const { return rubato::any_momentum(momentum_, groups_); }

  /// The ranges of a step, which together are all parameters, valid until the next call;
  /// `coefficients_of(LayerRates)` gives the coefficients of one tensor. Throws Error unless the
  /// update is of size() parameters and has a gradient for each.
  template <class T, class CoefficientsOf>
  [[nodiscard]] std::span<const CoefficientRange<Coefficients>> of_step(
      const Update<T>& update, const CoefficientsOf& coefficients_of) {
    require_size(update, size());
    ranges_.clear();
    for (std::size_t layer = 0; layer < layers(); ++layer) {
      const GroupOptions group = group_of(groups_, layout_.layer_groups[layer]);
      const LayerRates rates =
          rates_of_layer(layer, update.rates, layout_, group, weight_decay_, momentum_);
      append_range(ranges_, layout_.layer_ends[layer], coefficients_of(rates));
    }
    return ranges_;
  }

 private:
  ParameterLayout layout_;
  std::vector<GroupOptions> groups_;
  double weight_decay_;
  double momentum_;
  // Of the step, kept for their memory.
  std::vector<CoefficientRange<Coefficients>> ranges_;
};

/// Calls kernel(begin, end, coefficients) for pieces that together are all parameters, each within
/// one range, shared out over the threads. The ranges cover all parameters.
template <class T, class Coefficients, class Kernel>
void for_each_piece(const Update<T>& update, std::span<const CoefficientRange<Coefficients>> ranges,
                    Workers& workers, const Kernel& kernel) {
  workers.for_each_range(update.parameters.size(), [&](std::size_t begin, std::size_t end) {
    auto range = std::partition_point(ranges.begin(), ranges.end(),
                                      [begin](const auto& of) { return of.end <= begin; });
    for (std::size_t at = begin; at < end; ++range) {
      const std::size_t piece_end = std::min(end, range->end);
      kernel(at, piece_end, range->coefficients);
      at = piece_end;
    }
  });
}

}  // namespace rubato
