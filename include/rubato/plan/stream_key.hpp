#pragma once

#include <cstdint>

namespace rubato {

/// What a stream of random numbers belongs to: never a thread or a core, so that the numbers are
/// the same whoever draws them.
struct StreamKey {
  std::uint64_t seed = 0;
  /// In which the step begins.
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  /// Within that epoch, counted on where the step goes on beyond it.
  std::int64_t minibatch = 0;
};

}  // namespace rubato
