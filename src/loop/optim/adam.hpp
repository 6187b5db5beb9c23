#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <rubato/loop/optimizer.hpp>

#include "ranges.hpp"

namespace rubato {

struct AdamOptions {
  /// The decay rates of the moments, both in [0, 1).
  double beta1 = 0.9;
  double beta2 = 0.999;
  /// Added to the root of the second moment, at least 0.
  double epsilon = 1e-8;
  bool amsgrad = false;
  /// The weight decay, at least 0.
  double weight_decay = 0;
  /// True if the weight decay shortens the parameter itself, which is AdamW; false if it is added
  /// to the gradient.
  bool decoupled = false;
};

/// The coefficients with which the kernel updates one range.
template <class T>
struct AdamCoefficients {
  GradientCoefficients<T> gradient;
  T beta1 = 0;
  /// 1 - beta1, and 1 - beta2.
  T rest1 = 1;
  T beta2 = 0;
  T rest2 = 1;
  T root_of_correction2 = 1;
  T epsilon = 0;
  T step_size = 0;
  /// The share of a parameter that decoupled weight decay leaves.
  T kept = 1;

  friend bool operator==(const AdamCoefficients&, const AdamCoefficients&) = default;
};

/// Adam (Kingma and Ba 2015, "Adam: a method for stochastic optimization", algorithm 1), with
/// AMSGrad (Reddi, Kale and Kumar 2018, "On the convergence of Adam and beyond", algorithm 2) and
/// AdamW's decoupled weight decay (Loshchilov and Hutter 2019, "Decoupled weight decay
/// regularization", algorithm 2) on request, in one pass over memory, divided among all threads. In
/// step t, counted from 1 (and for each tensor separately, if some steps do not reach it), with g
/// the gradient that is applied,
///
///     g = g + weight_decay w                     where the decay is not decoupled
///     w = (1 - rate weight_decay) w              where it is
///     m = beta1 m + (1 - beta1) g
///     v = beta2 v + (1 - beta2) g g
///     u = amsgrad ? max(u, v) : v
///     w = w - rate / (1 - beta1^t) m / (sqrt(u) / sqrt(1 - beta2^t) + epsilon)
///
/// Each operation is the same as in libtorch 1.13.1, and rounded once. The last term is 0 if its
/// divisor is 0, which can happen only if epsilon is 0. Powers are computed as products, because
/// std::pow() need not give the same bits on every CPU.
///
/// T is float or double; coefficients are rounded to it once.
template <class T>
class Adam final : public FlatOptimizer<T> {
 public:
  /// Throws Error for an option out of range. Groups beyond the list have default options.
  Adam(ParameterLayout layout, const AdamOptions& options, std::vector<GroupOptions> groups = {});

  /// The number of values that it remembers for each parameter.
  [[nodiscard]] static int remembered(const AdamOptions& options,
                                      const std::vector<GroupOptions>& /*groups*/) {
    return options.amsgrad ? 3 : 2;
  }
  void step(const Update<T>& update, Workers& workers) override;
  void visit_state(StateVisitor& state) override;
  [[nodiscard]] bool follows_sums() const override { return false; }

 private:
  AdamOptions options_;
  LayerRanges<AdamCoefficients<T>> ranges_;
  LayerSteps steps_;
  std::vector<T> mean_;
  std::vector<T> square_;
  // The largest second moments of AMSGrad; else empty.
  std::vector<T> largest_square_;
};

extern template class Adam<float>;
extern template class Adam<double>;

}  // namespace rubato
