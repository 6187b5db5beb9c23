#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>

#include "base/core/throw_error.hpp"
#include "numbers/collective/tree_sum.hpp"

namespace rubato {

// The operations on elements that optimizers share. Every operation is rounded once, and correctly
// (IEEE 754 requires that for square root and division, too), so neither the instruction set nor
// the way in which an array is divided changes a bit.

/// Coefficients that turn the sum of the minibatches' gradients into the gradient that is applied.
template <class T>
struct GradientCoefficients {
  T factor = 1;
  /// Bounds every element of factor x sum to [-clip, clip]; above 0.
  T clip = std::numeric_limits<T>::infinity();
  /// Multiplied by the parameter and added to its gradient.
  T weight_decay = 0;

  friend bool operator==(const GradientCoefficients&, const GradientCoefficients&) = default;
};

/// Returns clamp(factor x sum, -clip, clip) + weight_decay x parameter.
template <class T>
[[gnu::always_inline]] inline T applied_gradient(T sum, T parameter,
                                                 const GradientCoefficients<T>& c) {
  // std::clamp() would prevent vectorisation.
  T g = c.factor * sum;
  g = g < -c.clip ? -c.clip : g;
  g = g > c.clip ? c.clip : g;
  return g + c.weight_decay * parameter;
}

/// Returns a / b, or 0 if b is 0.
template <class T>
[[gnu::always_inline]] inline T quotient(T a, T b) {
  // A choice between two results would prevent vectorisation: the compiler would divide in one
  // branch only.
  return a / (b == T{0} ? std::numeric_limits<T>::infinity() : b);
}

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

/// Returns the momentum that a rule has answered for parameters with this one. It stays above 0
/// where there is a velocity, which the kernels would otherwise leave as it is.
[[nodiscard]] inline double answered_momentum(const std::optional<double>& answer,
                                              double momentum) {
  if (!answer || momentum == 0) return momentum;
  return std::max(*answer, double{std::numeric_limits<float>::min()});
}

/// Combines an optimizer's weight decay and momentum with the group's options and the rates, for a
/// tensor of that group.
[[nodiscard]] inline LayerRates rates_of_layer(std::size_t layer, const Rates& rates,
                                               const ParameterLayout& layout,
                                               const GroupOptions& group, double weight_decay,
                                               double momentum) {
  double rate = rates.update_rate * group.learning_rate_factor;
  if (layer < layout.rate_factors.size()) rate *= layout.rate_factors[layer];
  if (!rates.group_factors.empty()) rate *= rates.group_factors[layout.layer_groups[layer]];
  if (!rates.layer_factors.empty() && group.layer_wise) rate *= rates.layer_factors[layer];
  return {.index = layer,
          .rate = rate,
          .weight_decay = group.weight_decay.value_or(weight_decay) * rates.weight_decay_factor,
          .momentum = group.momentum ? *group.momentum
                                     : answered_momentum(rates.optimizer.momentum, momentum),
          .layer_wise = group.layer_wise};
}

/// Appends a tensor's range, or extends the last one if their coefficients are equal.
template <class Coefficients>
void append_range(std::vector<CoefficientRange<Coefficients>>& ranges, std::size_t end,
                  const Coefficients& coefficients) {
  if (!ranges.empty() && !ranges.back().left_alone && ranges.back().coefficients == coefficients) {
    ranges.back().end = end;
  } else {
    ranges.push_back({.end = end, .coefficients = coefficients});
  }
}

/// Calls task(layer, reached) for every tensor from 0 to layers - 1. `unreached`
/// (Update::unreached) is in ascending order.
template <class Task>
void for_each_layer(std::size_t layers, std::span<const std::size_t> unreached, const Task& task) {
  auto next = unreached.begin();
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const bool reached = next == unreached.end() || *next != layer;
    if (!reached) ++next;
    task(layer, reached);
  }
}

/// Multiplies what an optimizer remembers, divided among the threads. A factor of 0 forgets
/// infinities, too.
template <class T>
void multiply(std::span<T> remembered, T factor, Workers& workers) {
  workers.for_each_range(remembered.size(), [&](std::size_t begin, std::size_t end) {
    for (T& value : remembered.subspan(begin, end - begin)) {
      value = factor == T{0} ? T{0} : value * factor;
    }
  });
}

/// Throws Error unless the update has that number of parameters, and a gradient for each.
template <class T>
void require_size(const Update<T>& update, std::size_t size) {
  if (size == update.parameters.size() && update.gradient_sum.size() >= size) return;
  throw_error(
      "an update of {} parameters has {} gradients, and the layout {} values; accepted: as many of "
      "each",
      update.parameters.size(), update.gradient_sum.size(), size);
}

/// The parameter tensors of an optimizer and the options of their groups. It determines, for each
/// step, the coefficients of every parameter.
template <class Coefficients>
class LayerRanges {
 public:
  /// `weight_decay` and `momentum` are those of groups without their own. Groups beyond the list
  /// have default options.
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
  /// Returns whether any parameter has a velocity.
  [[nodiscard]] bool any_momentum() const { return rubato::any_momentum(momentum_, groups_); }
  /// Returns the numbers of an optimizer with a velocity.
  [[nodiscard]] OptimizerNumbers numbers() const {
    return {.momentum = momentum_ == 0 ? std::nullopt : std::optional(momentum_),
            .has_mean = any_momentum()};
  }

  /// Returns the ranges of a step, which cover all parameters, valid until the next call;
  /// `coefficients_of(LayerRates)` returns the coefficients of one tensor. Tensors without a
  /// gradient are left alone. Throws Error unless the update has size() parameters and a gradient
  /// for each.
  template <class T, class CoefficientsOf>
  [[nodiscard]] std::span<const CoefficientRange<Coefficients>> of_step(
      const Update<T>& update, const CoefficientsOf& coefficients_of) {
    require_size(update, size());
    ranges_.clear();
    for_each_layer(layers(), update.unreached, [&](std::size_t layer, bool reached) {
      const std::size_t end = layout_.layer_ends[layer];
      if (!reached) return ranges_.push_back({.end = end, .left_alone = true});
      const GroupOptions group = group_of(groups_, layout_.layer_groups[layer]);
      const LayerRates rates =
          rates_of_layer(layer, update.rates, layout_, group, weight_decay_, momentum_);
      append_range(ranges_, end, coefficients_of(rates));
    });
    return ranges_;
  }

 private:
  ParameterLayout layout_;
  std::vector<GroupOptions> groups_;
  double weight_decay_;
  double momentum_;
  // The ranges of the step, kept to reuse their memory.
  std::vector<CoefficientRange<Coefficients>> ranges_;
};

/// Counts the updates of each tensor: all updates except those that did not reach it, as PyTorch's
/// optimizers count.
class LayerSteps {
 public:
  /// Returns the number of the update in progress, from 1, for a tensor that it reaches.
  [[nodiscard]] std::int64_t of(std::size_t layer) const {
    return all_ + 1 - (missed_.empty() ? 0 : missed_[layer]);
  }
  /// Counts the update that is done.
  void count(std::size_t layers, std::span<const std::size_t> unreached) {
    ++all_;
    if (unreached.empty()) return;
    missed_.resize(layers);
    for (const std::size_t layer : unreached) ++missed_[layer];
  }
  /// The states of older versions, and of trainings that reach all tensors in every step, contain
  /// only the count of all updates.
  void visit_state(StateVisitor& state, std::string_view name, std::size_t layers) {
    state.count(name, all_);
    const std::string missed = fmt::format("{}.missed", name);
    const bool there = state.has(missed, !missed_.empty());
    if (state.loading()) missed_.assign(there ? layers : 0, 0);
    if (!there) return;
    state.values(missed, std::span<std::int64_t>(missed_));
    state.require(std::ranges::all_of(missed_, [&](auto of) { return of >= 0 && of <= all_; }),
                  "a tensor has missed more updates than there were");
  }

 private:
  std::int64_t all_ = 0;
  // The missed updates of each tensor; empty while every update has reached every tensor.
  std::vector<std::int64_t> missed_;
};

/// The products of a beta of Adam over the updates of each tensor, by which it corrects the bias of
/// a moment. While the betas are those of the options they are powers, of which nothing is kept.
class BetaProducts {
 public:
  /// Returns the product with that of the update in progress, which is update number `step` of the
  /// tensor.
  [[nodiscard]] double of(std::size_t layer, double beta, std::int64_t step) const {
    return products_.empty() ? power(beta, step) : products_[layer] * beta;
  }
  /// Returns the product of the updates before that.
  [[nodiscard]] double before(std::size_t layer, double beta, std::int64_t step) const {
    return products_.empty() ? power(beta, step - 1) : products_[layer];
  }
  /// Keeps products from the update in progress on, because its beta is not `beta`, that of all
  /// updates so far, or because they begin anew with it.
  void keep(double beta, const LayerSteps& steps, std::size_t layers) {
    if (!products_.empty()) return;
    products_.resize(layers);
    for (std::size_t i = 0; i < layers; ++i) products_[i] = power(beta, steps.of(i) - 1);
  }
  void forget() { std::ranges::fill(products_, 1.0); }
  /// Multiplies by the beta of the update that is done.
  void count(double beta, std::span<const std::size_t> unreached) {
    for_each_layer(products_.size(), unreached, [&](std::size_t layer, bool reached) {
      if (reached) products_[layer] *= beta;
    });
  }
  void visit_state(StateVisitor& state, const std::string& name, std::size_t layers) {
    const bool there = state.has(name, !products_.empty());
    if (state.loading()) products_.assign(there ? layers : 0, 1.0);
    if (!there) return;
    state.values(name, std::span<double>(products_));
    state.require(std::ranges::all_of(products_, [](double of) { return of >= 0 && of <= 1; }),
                  "a product of betas is not between 0 and 1");
  }

  /// Computes base^exponent by multiplications alone.
  [[nodiscard]] static double power(double base, std::int64_t exponent) {
    double power = 1;
    for (; exponent > 0; exponent /= 2) {
      if (exponent % 2 == 1) power *= base;
      base *= base;
    }
    return power;
  }

 private:
  std::vector<double> products_;
};

/// Calls kernel(begin, end, coefficients) for pieces that cover all parameters except those to be
/// left alone, each piece within one range, divided among the threads. The ranges cover all
/// parameters.
template <class T, class Coefficients, class Kernel>
void for_each_piece(const Update<T>& update, std::span<const CoefficientRange<Coefficients>> ranges,
                    Workers& workers, const Kernel& kernel) {
  workers.for_each_range(update.parameters.size(), [&](std::size_t begin, std::size_t end) {
    auto range = std::partition_point(ranges.begin(), ranges.end(),
                                      [begin](const auto& of) { return of.end <= begin; });
    for (std::size_t at = begin; at < end; ++range) {
      const std::size_t piece_end = std::min(end, range->end);
      if (!range->left_alone) kernel(at, piece_end, range->coefficients);
      at = piece_end;
    }
  });
}

}  // namespace rubato
