// Each kernel of rubato/numbers/sums.hpp is a plain loop that is always inlined, which
// with_vectors() compiles for the vectors of several instruction sets. The compiler may vectorise
// only what keeps every bit, so the loops are written for that: elements are independent, and the
// squared norm spells out its sixteen lanes and the order in which they are added. Sizes are
// checked once for each call, outside of the loops.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <rubato/numbers/sums.hpp>

#include "base/core/check.hpp"
#include "base/machine/instruction_set.hpp"
#include "tree_sum.hpp"

namespace rubato {

namespace {

template <class T>
[[gnu::always_inline]] inline void add_loop(T* __restrict into, const T* __restrict from,
                                            std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] += from[i];
}

// The loop works on integers, because the order of floating-point operations would prevent vectors.
template <class T>
[[gnu::always_inline]] inline bool finite_loop(const T* values, std::size_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr auto kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits found = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool special = (std::bit_cast<Bits>(values[i]) & kExponent) == kExponent;
    found |= static_cast<Bits>(special);
  }
  return found == 0;
}

constexpr std::size_t kLanes = 16;

template <class Value>
[[gnu::always_inline]] inline double norm_loop(const Value& value_of, std::size_t n) {
  std::array<double, kLanes> lanes{};
  const std::size_t whole = n / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = value_of(i + lane);
      lanes[lane] += value * value;
    }
  }
  for (std::size_t i = whole; i < n; ++i) {
    const double value = value_of(i);
    lanes[i - whole] += value * value;
  }
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) {
      lanes[lane] = lanes[2 * lane] + lanes[2 * lane + 1];
    }
  }
  return lanes[0];
}

template <bool Momentum, bool Nesterov, class T>
[[gnu::always_inline]] inline void sgd_loop(T* __restrict parameters, T* __restrict velocity,
                                            const T* __restrict gradient, std::size_t n,
                                            SgdCoefficients<T> c) {
  T none{};
  for (std::size_t i = 0; i < n; ++i) {
    sgd_element<Momentum, Nesterov>(parameters[i], Momentum ? velocity[i] : none, gradient[i], c);
  }
}

template <class T>
[[gnu::always_inline]] inline void sgd_loops(T* parameters, T* velocity, const T* gradient,
                                             std::size_t n, const SgdCoefficients<T>& c) {
  with_kind_of_step(
      c, [&]<bool Momentum, bool Nesterov>() __attribute__((always_inline)) {
        sgd_loop<Momentum, Nesterov>(parameters, velocity, gradient, n, c);
      });
}

template <class T>
void checked_add(std::span<T> into, std::span<const T> from) {
  RUBATO_CHECK(into.size() == from.size(), "arrays of one size are added");
  with_vectors([&]() __attribute__((always_inline)) {
    add_loop(into.data(), from.data(), into.size());
  });
}

template <class T>
void checked_sgd(std::span<T> parameters, std::span<T> velocity, std::span<const T> gradient,
                 const SgdCoefficients<T>& c) {
  RUBATO_CHECK(gradient.size() == parameters.size(), "every parameter has a gradient");
  RUBATO_CHECK(c.momentum == T{0} || velocity.size() == parameters.size(),
               "with momentum every parameter has a velocity");
  with_vectors([&]() __attribute__((always_inline)) {
    sgd_loops(parameters.data(), velocity.data(), gradient.data(), parameters.size(), c);
  });
}

template <class T>
bool finite_in(std::span<const T> values) {
  return with_vectors([&]() __attribute__((always_inline)) {
    return finite_loop(values.data(), values.size());
  });
}

template <class T>
double norm_in(std::span<const T> values) {
  const T* const of = values.data();
  return with_vectors([&]() __attribute__((always_inline)) {
    return norm_loop(
        [of](std::size_t i) __attribute__((always_inline)) { return double{of[i]}; },
        values.size());
  });
}

template <class T>
double weighted_norm_in(std::span<const T> values, std::span<const T> weights) {
  RUBATO_CHECK(weights.size() == values.size(), "every value has a weight");
  const T* const of = values.data();
  const T* const by = weights.data();
  return with_vectors([&]() __attribute__((always_inline)) {
    return norm_loop(
        [ of, by ](std::size_t i)
            __attribute__((always_inline)) { return double{of[i]} * double{by[i]}; },
        values.size());
  });
}

}  // namespace

void add(std::span<float> into, std::span<const float> from) {
  checked_add(into, from);
}
void add(std::span<double> into, std::span<const double> from) {
  checked_add(into, from);
}

bool all_finite(std::span<const float> values) {
  return finite_in(values);
}
bool all_finite(std::span<const double> values) {
  return finite_in(values);
}

double squared_norm(std::span<const float> values) {
  return norm_in(values);
}
double squared_norm(std::span<const double> values) {
  return norm_in(values);
}
double squared_norm(std::span<const float> values, std::span<const float> weights) {
  return weighted_norm_in(values, weights);
}
double squared_norm(std::span<const double> values, std::span<const double> weights) {
  return weighted_norm_in(values, weights);
}

void sgd_step(std::span<float> parameters, std::span<float> velocity,
              std::span<const float> gradient, const SgdCoefficients<float>& coefficients) {
  checked_sgd(parameters, velocity, gradient, coefficients);
}
void sgd_step(std::span<double> parameters, std::span<double> velocity,
              std::span<const double> gradient, const SgdCoefficients<double>& coefficients) {
  checked_sgd(parameters, velocity, gradient, coefficients);
}

}  // namespace rubato
