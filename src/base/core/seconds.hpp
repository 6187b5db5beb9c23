#pragma once

#include <chrono>

namespace rubato {

/// The conversion between times in seconds and hours, which people and prices use.
inline constexpr double kSecondsOfHour = 3600;

/// Measures consecutive time intervals on the monotonic clock.
class Stopwatch {
 public:
  /// Seconds since construction or the last lap; begins a new lap.
  double lap() {
    const auto now = Clock::now();
    const std::chrono::duration<double> passed = now - start_;
    start_ = now;
    return passed.count();
  }
  /// Seconds since then, without beginning a new lap.
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  /// The time at which the lap began.
  [[nodiscard]] std::chrono::steady_clock::time_point begun() const { return start_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace rubato
