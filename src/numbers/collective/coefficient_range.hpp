#pragma once

#include <cstddef>

namespace rubato {

/// Elements of a parameter array, from the end of the preceding range (or 0) to `end`, with the
/// coefficients of their update, or with `left_alone` if they are not updated.
template <class Coefficients>
struct CoefficientRange {
  std::size_t end = 0;
  Coefficients coefficients{};
  bool left_alone = false;
};

}  // namespace rubato
