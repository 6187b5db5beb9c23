#pragma once

#include <rubato/numbers/sums.hpp>

namespace rubato {

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

}  // namespace rubato
