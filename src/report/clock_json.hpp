#pragma once

#include <nlohmann/json.hpp>

#include <rubato/plan/clock_time.hpp>

namespace rubato {

/// What a clock of modelled time shows, as records have it.
[[nodiscard]] inline nlohmann::ordered_json clock_json(const ClockTime& time) {
  constexpr double kHour = 3600;
  return {{"hours", time.seconds / kHour},
          {"core_hours", time.core_seconds / kHour},
          {"money", time.money},
          {"idle_hours", time.idle_seconds / kHour},
          {"lost_hours", time.lost_seconds / kHour},
          {"restarts", time.restarts}};
}

}  // namespace rubato
