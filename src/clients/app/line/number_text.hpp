#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "runs/report/progress.hpp"

namespace rubato::app {

/// Formats 12000 as "12,000"; `value` must not be negative.
[[nodiscard]] inline std::string grouped(std::int64_t value) {
  std::string digits = fmt::to_string(value);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

/// The same for a number that is rounded first.
[[nodiscard]] inline std::string rounded(double value) {
  return grouped(std::llround(value));
}

/// Formats seconds of modelled time: "5.02 s", "12:30", "2:13:05".
[[nodiscard]] inline std::string modelled_time(double seconds) {
  constexpr double kMinute = 60;
  return seconds < kMinute ? fmt::format("{:.3g} s", seconds) : clock_time(seconds);
}

}  // namespace rubato::app
