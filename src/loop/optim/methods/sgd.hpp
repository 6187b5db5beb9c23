#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <rubato/loop/optimizer.hpp>
#include <rubato/numbers/sums.hpp>

#include "ranges.hpp"
#include "velocity_state.hpp"

namespace rubato {

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

}  // namespace rubato
