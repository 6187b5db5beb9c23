#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <rubato/loop/optimizer.hpp>

#include "ranges.hpp"

namespace rubato {

struct AdagradOptions {
  /// The decay of the learning rate, at least 0.
  double lr_decay = 0;
  /// The initial value of the sums of squares, at least 0.
  double initial_accumulator = 0;
  /// Added to the root of the sum of squares, at least 0.
  double epsilon = 1e-10;
  /// The weight decay, at least 0: multiplied by the parameter and added to its gradient (L2).
  double weight_decay = 0;
};

/// The coefficients with which the kernel updates one range.
template <class T>
struct AdagradCoefficients {
  GradientCoefficients<T> gradient;
  T epsilon = 0;
  T step_size = 0;

  friend bool operator==(const AdagradCoefficients&, const AdagradCoefficients&) = default;
};

/// Adagrad with a diagonal matrix (Duchi, Hazan and Singer 2011, "Adaptive subgradient methods for
/// online learning and stochastic optimization", figure 1), in one pass over memory, divided among
/// all threads. In step t, counted from 1, with g the gradient that is applied, its weight decay
/// included,
///
///     s = s + g g
///     w = w - rate / (1 + (t - 1) lr_decay) g / (sqrt(s) + epsilon)
///
/// Each operation is the same as in libtorch 1.13.1, and rounded once. The last term is 0 if its
/// divisor is 0, which can happen only if epsilon is 0.
///
/// T is float or double; coefficients are rounded to it once.
template <class T>
class Adagrad final : public FlatOptimizer<T> {
 public:
  /// Throws Error for an option out of range. Groups beyond the list have default options.
  Adagrad(ParameterLayout layout, const AdagradOptions& options,
          std::vector<GroupOptions> groups = {});

  /// The number of values that it remembers for each parameter.
  [[nodiscard]] static int remembered(const AdagradOptions& /*options*/,
                                      const std::vector<GroupOptions>& /*groups*/) {
    return 1;
  }
  void step(const Update<T>& update, Workers& workers) override;
  void visit_state(StateVisitor& state) override;
  [[nodiscard]] bool follows_sums() const override { return false; }

 private:
  AdagradOptions options_;
  LayerRanges<AdagradCoefficients<T>> ranges_;
  LayerSteps steps_;
  std::vector<T> square_sum_;
};

extern template class Adagrad<float>;
extern template class Adagrad<double>;

}  // namespace rubato
