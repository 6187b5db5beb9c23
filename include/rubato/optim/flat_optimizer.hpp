#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <rubato/runtime/workers.hpp>
#include <rubato/scaling/rule.hpp>
#include <rubato/state/state.hpp>

namespace rubato {

/// The parameter tensors of a model in their flat buffer, one after the other.
struct ParameterLayout {
  /// Where each tensor ends, the padding behind it included. Ascending.
  std::vector<std::size_t> layer_ends;
  /// The group of each tensor.
  std::vector<std::size_t> layer_groups;

  /// One tensor, of one group.
  [[nodiscard]] static ParameterLayout whole(std::size_t size) { return {{size}, {0}}; }

  [[nodiscard]] std::size_t layers() const { return layer_ends.size(); }
  [[nodiscard]] std::size_t size() const { return layer_ends.empty() ? 0 : layer_ends.back(); }
};

/// In what the parameters of a group are treated differently.
struct GroupOptions {
  /// On the learning rate, at least 0.
  double learning_rate_factor = 1;
  /// Where they are not the optimizer's own.
  std::optional<double> weight_decay{};
  std::optional<double> momentum{};
  /// Whether layer-wise rates (LARS) apply.
  bool layer_wise = true;
};

/// One update, to be made.
template <class T>
struct Update {
  std::span<T> parameters;
  /// The sum of the minibatches' gradients.
  std::span<const T> gradient_sum;
  /// The gradient is this times the sum: 1 / minibatches for the mean, and what clipping makes of
  /// it.
  T gradient_factor = 1;
  /// Every element of that gradient is bounded to [-clip, clip]; above 0.
  T clip = std::numeric_limits<T>::infinity();
  Rates rates;
  /// Of each tensor, the gradient with its factor; where the optimizer needs them.
  std::span<const ParameterNorms> layers{};
};

/// An optimizer on the one flat buffer of parameters that all replicas share. It is called once for
/// each step, and the result is the same bits for every number of threads.
///
/// T is float or double.
template <class T>
class FlatOptimizer {
 public:
  FlatOptimizer() = default;
  FlatOptimizer(const FlatOptimizer&) = delete;
  FlatOptimizer& operator=(const FlatOptimizer&) = delete;
  virtual ~FlatOptimizer() = default;

  virtual void step(const Update<T>& update, Workers& workers) = 0;
  /// What it remembers from step to step. Throws Error for a state that is not of such an
  /// optimizer.
  virtual void visit_state(StateVisitor& state) = 0;
  /// Whether Update::layers must be there.
  [[nodiscard]] virtual bool needs_parameter_norms() const { return false; }
  /// Whether rules that sum gradients (GradientReduction::sum) do with it what they say: the step
  /// grows with the gradient, and the weight decay with Rates::weight_decay_factor.
  [[nodiscard]] virtual bool follows_sums() const { return true; }
};

}  // namespace rubato
