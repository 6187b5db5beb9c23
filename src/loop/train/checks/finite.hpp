#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include <rubato/loop/workers.hpp>
#include <rubato/numbers/sums.hpp>

namespace rubato {

/// Returns whether no value is infinite or NaN. All threads search.
template <class T>
[[nodiscard]] bool is_finite(std::span<const T> values, Workers& workers) {
  std::atomic<bool> finite{true};
  workers.for_each_range(values.size(), [&](std::size_t begin, std::size_t end) {
    // Relaxed suffices: the flag is read after the threads have been joined.
    if (!all_finite(values.subspan(begin, end - begin))) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite;
}

}  // namespace rubato
