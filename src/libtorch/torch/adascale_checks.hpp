#pragma once

#include <cmath>
#include <cstdint>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"

// Checks of the options of AdaScale around an optimizer, for C++ and Python.

namespace rubato {

/// Throws Error unless a step of `world_size` workers, each of which accumulates this many
/// gradients, has at least two: a single gradient says nothing about the variance.
inline void require_gradients(std::int64_t world_size, std::int64_t gradients_to_accumulate) {
  if (world_size < 1 || gradients_to_accumulate < 1) {
    throw_error("AdaScale with world size {} and {} gradients to accumulate: both are at least 1",
                world_size, gradients_to_accumulate);
  }
  if (world_size == 1 && gradients_to_accumulate == 1) {
    throw Error(
        "AdaScale needs at least two gradients in a step; accepted: a world size or a number of "
        "gradients to accumulate above 1");
  }
}

/// Throws Error for a scale that is not finite and above 0.
inline double checked_scale(double scale) {
  if (scale > 0 && std::isfinite(scale)) return scale;
  throw_error("AdaScale's scale {}: accepted are values above 0", scale);
}

}  // namespace rubato
