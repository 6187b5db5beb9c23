#pragma once

#include <cstdint>
#include <span>

#include <rubato/collective/kernels.hpp>

namespace rubato {

/// The numbers of a minibatch that are summed along with its gradient, in the same order.
struct StepScalars {
  /// Loss of the minibatch (its mean over the samples).
  double loss = 0;
  /// Minibatches in the sum.
  std::int64_t minibatches = 0;

  StepScalars& operator+=(const StepScalars& other) {
    loss += other.loss;
    minibatches += other.minibatches;
    return *this;
  }
};

/// The sum over some leaves of a step. The memory is a buffer pool's.
template <class T>
struct PartialSum {
  /// The gradient, and behind it whatever else is averaged over minibatches.
  std::span<T> values;
  StepScalars scalars;

  PartialSum& operator+=(const PartialSum& other) {
    add(values, std::span<const T>(other.values));
    scalars += other.scalars;
    return *this;
  }
};

}  // namespace rubato
