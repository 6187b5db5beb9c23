#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rubato/base/parse.hpp>

namespace rubato::lab {

/// The order in which the cores' buffers become available.
enum class Arrival {
  simultaneous,  ///< all at the start
  skewed,        ///< one after the other, evenly
  straggler,     ///< all at the start, except the last
};
inline constexpr std::array<Choice<Arrival>, 3> kArrivals{{{Arrival::simultaneous, "simultaneous"},
                                                           {Arrival::skewed, "skewed"},
                                                           {Arrival::straggler, "straggler"}}};

/// The content of the caches at the start.
enum class Cache {
  hot,   ///< the buffers as far as they fit, as after a backward pass
  cold,  ///< nothing of the buffers
};
inline constexpr std::array<Choice<Cache>, 2> kCaches{{{Cache::hot, "hot"}, {Cache::cold, "cold"}}};

/// The time at which each core's buffer becomes available, in seconds from the start; the last
/// core's is the latest.
using Arrivals = std::vector<double>;

/// The arrivals at `cores` cores, the last of which is after `last` seconds.
[[nodiscard]] inline Arrivals arrivals_of(Arrival arrival, std::int64_t cores, double last) {
  Arrivals arrivals(static_cast<std::size_t>(cores), 0.0);
  if (arrival == Arrival::simultaneous) return arrivals;
  arrivals.back() = last;
  if (arrival == Arrival::straggler) return arrivals;
  for (std::size_t core = 0; core + 1 < arrivals.size(); ++core) {
    arrivals[core] = last * static_cast<double>(core) / static_cast<double>(arrivals.size() - 1);
  }
  return arrivals;
}

/// The arrival of the last buffer if the whole task takes `seconds`: later than any strategy needs
/// for the others.
[[nodiscard]] inline double wait_for_last(double seconds) {
  constexpr double kLeast = 1e-3;
  return std::max(kLeast, 2 * seconds);
}

/// Whether a strategy or a peer gets another run in a turn of `seconds`, after `runs` runs that
/// took `spent` seconds.
[[nodiscard]] inline bool has_another_run(std::size_t runs, double spent, double seconds) {
  constexpr std::size_t kFewest = 2;
  constexpr std::size_t kMost = 334;
  return runs < kFewest || (runs < kMost && spent < seconds);
}

/// Memory that pushes everything else out of the caches when it is written.
class Flusher {
 public:
  /// Allocates nothing if the caches may be hot.
  explicit Flusher(Cache cache, std::size_t bytes = kBytes) : memory_(bytes_of(cache, bytes)) {}
  void flush() {
    constexpr std::size_t kLine = 64;
    for (std::size_t i = 0; i < memory_.size(); i += kLine) ++memory_[i];
  }

  /// The size of a flusher's memory.
  [[nodiscard]] static constexpr std::size_t bytes_of(Cache cache, std::size_t bytes = kBytes) {
    return cache == Cache::cold ? bytes : 0;
  }

  /// Exceeds the last-level cache that a workstation is likely to have.
  static constexpr std::size_t kBytes = std::size_t{256} << 20;

 private:
  std::vector<unsigned char> memory_;
};

}  // namespace rubato::lab
