#pragma once

#include <limits>
#include <span>

namespace rubato {

// Kernels over contiguous arrays. Every element is computed by itself, with each operation rounded
// once (no fused multiply-add), so that neither the length, nor where an array is cut, nor the
// instruction set changes a bit. On x86-64 the widest instruction set of the machine is taken at
// run time. T is float or double.

/// into[i] += from[i]. The spans have the same size and do not overlap.
void add(std::span<float> into, std::span<const float> from);
void add(std::span<double> into, std::span<const double> from);

/// Whether no element is infinite or NaN.
[[nodiscard]] bool all_finite(std::span<const float> values);
[[nodiscard]] bool all_finite(std::span<const double> values);

/// The sum of the squares, in double precision. Its order is fixed: sixteen lanes, element i in
/// lane i mod 16, and the lanes added two by two.
[[nodiscard]] double squared_norm(std::span<const float> values);
[[nodiscard]] double squared_norm(std::span<const double> values);

/// The coefficients of one SGD step.
template <class T>
struct SgdCoefficients {
  /// Multiplies the gradient sum first: 1 / minibatches for the mean, 1 for the sum.
  T gradient_factor = 1;
  T learning_rate = 0;
  T momentum = 0;
  T weight_decay = 0;
  bool nesterov = false;
  /// Bounds every element of gradient_factor x gradient to [-clip, clip]; above 0.
  T clip = std::numeric_limits<T>::infinity();

  friend bool operator==(const SgdCoefficients&, const SgdCoefficients&) = default;
};

/// One step of stochastic gradient descent with momentum, in one pass over memory:
///
///     d = clamp(gradient_factor x gradient, -clip, clip) + weight_decay x parameter
///     v = momentum x v + d
///     parameter -= learning_rate x (nesterov ? d + momentum x v : v)
///
/// which is torch.optim.SGD with dampening 0 (Sutskever et al. 2013 as changed there; the first
/// step from v = 0 is the same as its v = d). All spans have the same size; `velocity` is empty,
/// and left alone, when momentum is 0.
void sgd_step(std::span<float> parameters, std::span<float> velocity,
              std::span<const float> gradient, const SgdCoefficients<float>& coefficients);
void sgd_step(std::span<double> parameters, std::span<double> velocity,
              std::span<const double> gradient, const SgdCoefficients<double>& coefficients);

}  // namespace rubato
