#pragma once

#include <limits>

namespace rubato {

// Parts of the loops over elements that optimizers have in common. Every operation is rounded once,
// and correctly (IEEE 754 has square root and division among those), so that neither the
// instruction set nor where an array is cut changes a bit.

/// From the sum of the minibatches' gradients to the gradient that is applied.
template <class T>
struct GradientCoefficients {
  T factor = 1;
  /// Bounds every element of factor x sum to [-clip, clip]; above 0.
  T clip = std::numeric_limits<T>::infinity();
  /// Times the parameter, added to its gradient.
  T weight_decay = 0;

  friend bool operator==(const GradientCoefficients&, const GradientCoefficients&) = default;
};

/// clamp(factor x sum, -clip, clip) + weight_decay x parameter
template <class T>
[[gnu::always_inline]] inline T applied_gradient(T sum, T parameter,
                                                 const GradientCoefficients<T>& c) {
  // Not std::clamp(), which keeps loops from becoming vectors.
  T g = c.factor * sum;
  g = g < -c.clip ? -c.clip : g;
  g = g > c.clip ? c.clip : g;
  return g + c.weight_decay * parameter;
}

/// a / b, and 0 where b is 0.
template <class T>
[[gnu::always_inline]] inline T quotient(T a, T b) {
  // Not a choice of two results, which keeps loops from becoming vectors: the compiler would divide
  // in one branch only.
  return a / (b == T{0} ? std::numeric_limits<T>::infinity() : b);
}

}  // namespace rubato
