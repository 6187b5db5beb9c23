#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <rubato/core/choice.hpp>

#include "lab/contestant.hpp"

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

struct MeasureOptions {
  Arrival arrival = Arrival::simultaneous;
  Cache cache = Cache::hot;
  /// Seconds to spend on runs, about.
  double seconds = 0.5;
};

/// Seconds from the arrival of the last buffer to the end of the task.
struct Measurement {
  double median = 0;
  double min = 0;
  double max = 0;
  std::int64_t runs = 0;
};

/// Runs the contestant again and again, each time on fresh buffers. Its first run, untimed, is
/// checked: aborts where its result is wrong.
[[nodiscard]] Measurement measure(Contestant& contestant, const ReduceTask& task,
                                  const MeasureOptions& options);

}  // namespace rubato::lab
