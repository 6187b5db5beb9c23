#pragma once

#include <chrono>

namespace rubato {

/// Measures stretches of time on the monotonic clock, one after the other.
class Stopwatch {
 public:
  /// Seconds since the construction or the last lap.
  double lap() {
    const auto now = Clock::now();
    const std::chrono::duration<double> passed = now - start_;
    start_ = now;
    return passed.count();
  }
  /// The same without beginning a new lap.
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  /// When the lap began.
  [[nodiscard]] std::chrono::steady_clock::time_point begun() const { return start_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace rubato
