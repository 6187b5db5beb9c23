#pragma once

#include <cstdint>

#include <rubato/core/number.hpp>

namespace rubato {

/// What a clock of modelled time shows, and what that time has cost.
struct ClockTime {
  /// Since training began.
  double seconds = 0;
  /// Sum over the devices that steps have held, each for as long as it was held.
  double core_seconds = 0;
  /// core_seconds at the price of the model.
  double money = 0;
  /// Of `seconds`, those without devices, those spent on attempts at steps that were lost, and
  /// those of restarts.
  double idle_seconds = 0;
  double lost_seconds = 0;
  double restart_seconds = 0;
  /// How often a step was restarted, or training after a time without devices.
  std::int64_t restarts = 0;

  friend bool operator==(const ClockTime&, const ClockTime&) = default;

  void visit_state(NumberVisitor& numbers);
};

}  // namespace rubato
