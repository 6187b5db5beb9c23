#pragma once

#include <cmath>
#include <cstdint>

namespace rubato::detail {

/// Seconds in whole microseconds, in which an availability is exact; up to 4e9 seconds.
[[nodiscard]] inline std::int64_t microseconds_of(double seconds) {
  return std::llround(seconds * 1e6);
}
/// The nearest double; microseconds_of() converts it back to the same microseconds.
[[nodiscard]] inline double seconds_of(std::int64_t microseconds) {
  return static_cast<double>(microseconds) / 1e6;
}

}  // namespace rubato::detail
