#pragma once

#include <cstdint>
#include <functional>

#include "lab/conditions.hpp"
#include "lab/contestant.hpp"

namespace rubato::lab {

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

/// Seconds from some moment on.
using Clock = std::function<double()>;
[[nodiscard]] double steady_seconds();

/// Runs the contestant again and again, each time on fresh buffers. Its first run, untimed, is
/// checked: aborts where its result is wrong.
[[nodiscard]] Measurement measure(Contestant& contestant, const ReduceTask& task,
                                  const MeasureOptions& options,
                                  const Clock& clock = steady_seconds);

}  // namespace rubato::lab
