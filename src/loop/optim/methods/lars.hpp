#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <rubato/loop/optimizer.hpp>
#include <rubato/numbers/sums.hpp>

#include "ranges.hpp"
#include "velocity_state.hpp"

namespace rubato {

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
