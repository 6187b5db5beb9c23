#pragma once

#include <cstddef>
#include <span>

#include <rubato/numbers/sums.hpp>

namespace rubato {

/// Elements of a parameter array, from the end of the preceding range (or 0) to `end`, with the
/// coefficients of their update, or with `left_alone` if they are not updated.
template <class Coefficients>
struct CoefficientRange {
  std::size_t end = 0;
  Coefficients coefficients{};
  bool left_alone = false;
};

/// One step of sgd_step() for one parameter; `velocity` is not used without momentum.
template <bool Momentum, bool Nesterov, class T>
[[gnu::always_inline]] inline void sgd_element(T& parameter, T& velocity, T gradient,
                                               const SgdCoefficients<T>& c) {
  // The clamp is written out, because std::clamp() keeps loops from being vectorized.
  T d = c.gradient_factor * gradient;
  d = d < -c.clip ? -c.clip : d;
  d = d > c.clip ? c.clip : d;
  d += c.weight_decay * parameter;
  if constexpr (Momentum) {
    const T v = c.momentum * velocity + d;
    velocity = v;
    d = Nesterov ? d + c.momentum * v : v;
  }
  parameter -= c.learning_rate * d;
}

/// Calls loop.template operator()<Momentum, Nesterov>() according to the coefficients.
template <class T, class Loop>
[[gnu::always_inline]] inline void with_kind_of_step(const SgdCoefficients<T>& c, Loop&& loop) {
  if (c.momentum == T{0}) {
    loop.template operator()<false, false>();
  } else if (c.nesterov) {
    loop.template operator()<true, true>();
  } else {
    loop.template operator()<true, false>();
  }
}

// The functions below sum many arrays in one pass over memory, piece by piece in the first-level
// cache; pairwise addition of whole arrays would go through memory once for each addition. The
// order of every element's sum is that of SummationTree over the arrays, with each addition rounded
// once; so the bits do not depend on where a range is cut or on the instruction set, and they are
// those of adding whole arrays along the tree. T is float or double.

/// Computes out[i] = the sum of leaves[.][begin + i]. Requires at least one leaf, and begin +
/// out.size() elements in each. `out` may be one of the leaves, from `begin` on; otherwise it must
/// overlap none.
void tree_sum(std::span<const float* const> leaves, std::size_t begin, std::span<float> out);
void tree_sum(std::span<const double* const> leaves, std::size_t begin, std::span<double> out);

template <class T>
using SgdRange = CoefficientRange<SgdCoefficients<T>>;

/// One SGD step (sgd_step()) with the sum of the leaves as the gradient, which is never written to
/// memory: with N leaves of S bytes it moves (N + 4) S bytes, (N + 2) S without momentum.
///
/// Works on the elements [begin, begin + parameters.size()) of the leaves; `parameters` and
/// `velocity` hold these elements only. `ranges` ascend and cover them, with ends counted in
/// elements of the leaves; elements that are left alone are not read. `velocity` may be empty if
/// all momenta are 0.
void tree_sum_sgd(std::span<const float* const> leaves, std::size_t begin,
                  std::span<float> parameters, std::span<float> velocity,
                  std::span<const SgdRange<float>> ranges);
void tree_sum_sgd(std::span<const double* const> leaves, std::size_t begin,
                  std::span<double> parameters, std::span<double> velocity,
                  std::span<const SgdRange<double>> ranges);

}  // namespace rubato
