#pragma once

#include <string>

#include <fmt/format.h>

#include "runs/report/progress.hpp"

namespace rubato::app {

/// Formats seconds of modelled time: "5.02 s", "12:30", "2:13:05".
[[nodiscard]] inline std::string modelled_time(double seconds) {
  constexpr double kMinute = 60;
  return seconds < kMinute ? fmt::format("{:.3g} s", seconds) : clock_time(seconds);
}

}  // namespace rubato::app
