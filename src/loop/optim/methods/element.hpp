#pragma once

#include <limits>

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

}  // namespace rubato
