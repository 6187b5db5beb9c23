#pragma once

#include <cstddef>

namespace rubato {

/// The elements of a parameter array from the end of the range before (or from 0) to `end`, and
/// what they are updated with; or that they are left alone.
template <class Coefficients>
struct CoefficientRange {
  std::size_t end = 0;
  Coefficients coefficients{};
  bool left_alone = false;
};

}  // namespace rubato
