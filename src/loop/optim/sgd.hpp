#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/numbers/sums.hpp>

#include "numbers/collective/tree_sum.hpp"
#include "ranges.hpp"

namespace rubato {

inline constexpr std::string_view kVelocityName = "optimizer.velocity";

/// Visits the velocity of an optimizer; it is empty without momentum.
template <class T>
void visit_velocity(StateVisitor& state, std::span<T> velocity) {
  state.values(kVelocityName, velocity);
}

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

struct SgdOptions {
  /// The momentum, in [0, 1).
  double momentum = 0;
  /// The weight decay, at least 0: multiplied by the parameter and added to its gradient (L2).
  double weight_decay = 0;
  /// Nesterov's form; needs a momentum above 0.
  bool nesterov = false;
  MomentumForm momentum_form = MomentumForm::pytorch;
};

/// Stochastic gradient descent with momentum in one pass over memory, divided among all threads
/// (sgd_step() has the formula). In MXNet's form of momentum, with d = gradient + weight decay x w,
///
///     v = momentum v + rate d
///     w = w - (nesterov ? rate d + momentum v : v)
///
/// T is float or double; coefficients are rounded to it once.
template <class T>
class Sgd final : public FlatOptimizer<T> {
 public:
  /// Throws Error for an option out of range. Groups beyond the list have default options.
  Sgd(ParameterLayout layout, const SgdOptions& options, std::vector<GroupOptions> groups = {});

  /// The number of values that it remembers for each parameter.
  [[nodiscard]] static int remembered(const SgdOptions& options,
                                      const std::vector<GroupOptions>& groups) {
    return any_momentum(options.momentum, groups) ? 1 : 0;
  }
  void step(const Update<T>& update, Workers& workers) override;
  void visit_state(StateVisitor& state) override { visit_velocity<T>(state, velocity_); }

 private:
  SgdOptions options_;
  LayerRanges<SgdCoefficients<T>> ranges_;
  std::vector<T> velocity_;
};

extern template class Sgd<float>;
extern template class Sgd<double>;

struct LarsOptions {
  /// The momentum, in [0, 1).
  double momentum = 0.9;
  /// The L2 penalty, at least 0.
  double weight_decay = 0;
  /// The trust coefficient eta, above 0.
  double trust = 0.001;
  MomentumForm momentum_form = MomentumForm::mxnet;
};

/// Layer-wise adaptive rate scaling (You, Gitman and Ginsburg 2017, "Large batch training of
/// convolutional networks", algorithm 1), in one pass over memory like Sgd. For every tensor
///
///     lambda = trust |w| / (|g| + weight_decay |w|)
///     v = momentum v + rate lambda (g + weight_decay w)
///     w = w - v
///
/// and in PyTorch's form of momentum v = momentum v + g + weight_decay w, w = w - rate lambda v.
///
/// If |w| or |g| is 0 there is nothing to adapt to, and lambda is 1, as it is for groups without
/// GroupOptions::layer_wise.
///
/// T is float or double; coefficients are rounded to it once.
template <class T>
class Lars final : public FlatOptimizer<T> {
 public:
  /// Throws Error for an option out of range.
  Lars(ParameterLayout layout, const LarsOptions& options, std::vector<GroupOptions> groups = {});

  /// The number of values that it remembers for each parameter.
  [[nodiscard]] static int remembered(const LarsOptions& options,
                                      const std::vector<GroupOptions>& groups) {
    return any_momentum(options.momentum, groups) ? 1 : 0;
  }
  void step(const Update<T>& update, Workers& workers) override;
  void visit_state(StateVisitor& state) override { visit_velocity<T>(state, velocity_); }
  [[nodiscard]] bool needs_parameter_norms() const override { return true; }

 private:
  LarsOptions options_;
  LayerRanges<SgdCoefficients<T>> ranges_;
  std::vector<T> velocity_;
};

extern template class Lars<float>;
extern template class Lars<double>;

}  // namespace rubato
