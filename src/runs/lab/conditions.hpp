#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rubato/base/parse.hpp>

namespace rubato::lab {

/// When the cores' buffers are there.
enum class Arrival {
  simultaneous,  ///< all at the start
  skewed,        ///< one after the other, evenly
  straggler,     ///< all but the last at the start
};
inline constexpr std::array<Choice<Arrival>, 3> kArrivals{{{Arrival::simultaneous, "simultaneous"},
                                                           {Arrival::skewed, "skewed"},
                                                           {Arrival::straggler, "straggler"}}};

/// What of the buffers is in the caches at the start.
enum class Cache {
  hot,   ///< whatever fits, as after a backward pass
  cold,  ///< nothing
};
inline constexpr std::array<Choice<Cache>, 2> kCaches{{{Cache::hot, "hot"}, {Cache::cold, "cold"}}};

/// When each core's buffer is there, in seconds from the start; one for each core. The last core's
/// comes last.
using Arrivals = std::vector<double>;

/// The arrivals at `cores` cores, the last of them after `last` seconds.
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

/// How long the last buffer is waited for where the whole task takes `seconds`: longer than any
/// strategy takes for the others.
[[nodiscard]] inline double wait_for_last(double seconds) {
  constexpr double kLeast = 1e-3;
  return std::max(kLeast, 2 * seconds);
}

/// Whether a strategy or a peer that has had so many runs in a turn, and spent so many seconds on
/// them, gets another one in a turn of `seconds`.
[[nodiscard]] inline bool has_another_run(std::size_t runs, double spent, double seconds) {
  constexpr std::size_t kFewest = 2;
  constexpr std::size_t kMost = 334;
  return runs < kFewest || (runs < kMost && spent < seconds);
}

/// Memory that pushes everything else out of the caches when it is written.
class Flusher {
 public:
  /// Nothing where the caches may be hot.
  explicit Flusher(Cache cache, std::size_t bytes = kBytes) : memory_(bytes_of(cache, bytes)) {}
  void flush() {
    constexpr std::size_t kLine = 64;
    for (std::size_t i = 0; i < memory_.size(); i += kLine) ++memory_[i];
  }

  /// What a flusher keeps.
  [[nodiscard]] static constexpr std::size_t bytes_of(Cache cache, std::size_t bytes = kBytes) {
    return cache == Cache::cold ? bytes : 0;
  }

  /// More than the last-level cache that one workstation is likely to have.
  static constexpr std::size_t kBytes = std::size_t{256} << 20;

 private:
  std::vector<unsigned char> memory_;
};

}  // namespace rubato::lab
