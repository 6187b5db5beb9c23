#pragma once

#include <cstddef>
#include <vector>

#include <rubato/loop/optimizer.hpp>

#include "ranges.hpp"

namespace rubato {

struct RmspropOptions {
  /// The smoothing of the squares, in [0, 1).
  double alpha = 0.99;
  /// Added to the divisor, at least 0.
  double epsilon = 1e-8;
  /// True to divide gradients by their deviation instead of the root of their mean square.
  bool centered = false;
  /// The momentum, in [0, 1).
  double momentum = 0;
  /// The weight decay, at least 0: multiplied by the parameter and added to its gradient (L2).
  double weight_decay = 0;
};

/// The coefficients with which the kernel updates one range.
template <class T>
struct RmspropCoefficients {
  GradientCoefficients<T> gradient;
  T alpha = 0;
  /// 1 - alpha.
  T rest = 1;
  T epsilon = 0;
  T momentum = 0;
  T learning_rate = 0;

  friend bool operator==(const RmspropCoefficients&, const RmspropCoefficients&) = default;
};

/// RMSprop (Tieleman and Hinton 2012, Coursera "Neural networks for machine learning", lecture 6e),
/// centred as by Graves 2013 ("Generating sequences with recurrent neural networks", equations 38
/// to 45) on request, in one pass over memory, divided among all threads. With g the gradient that
/// is applied, its weight decay included,
///
///     s = alpha s + (1 - alpha) g g
///     a = alpha a + (1 - alpha) g                where it is centred
///     d = sqrt(centered ? s - a a : s) + epsilon
///     w = w - rate g / d                         without momentum
///     b = momentum b + g / d,  w = w - rate b    with it
///
/// Each operation is the same as in libtorch 1.13.1, and rounded once. If rounding makes s - a a
/// negative, it is taken as 0 (libtorch computes NaN). g / d is 0 if d is 0, which can happen only
/// if epsilon is 0.
///
/// T is float or double; coefficients are rounded to it once.
template <class T>
class Rmsprop final : public FlatOptimizer<T> {
 public:
  /// Throws Error for an option out of range. Groups beyond the list have default options.
  Rmsprop(ParameterLayout layout, const RmspropOptions& options,
          std::vector<GroupOptions> groups = {});

  /// The number of values that it remembers for each parameter.
  [[nodiscard]] static int remembered(const RmspropOptions& options,
                                      const std::vector<GroupOptions>& groups) {
    return 1 + (options.centered ? 1 : 0) + (any_momentum(options.momentum, groups) ? 1 : 0);
  }
  void step(const Update<T>& update, Workers& workers) override;
  void visit_state(StateVisitor& state) override;
  [[nodiscard]] bool follows_sums() const override { return false; }

 private:
  RmspropOptions options_;
  LayerRanges<RmspropCoefficients<T>> ranges_;
  std::vector<T> square_;
  // Empty unless it is centred.
  std::vector<T> mean_;
  // Empty if no group has a momentum.
  std::vector<T> velocity_;
};

extern template class Rmsprop<float>;
extern template class Rmsprop<double>;

}  // namespace rubato
