#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/text/wrapped.hpp"

namespace rubato::app {

/// Numbers that change in the course of time, or of steps: what is drawn.
struct Timeline {
  /// From `at` on it is `value`.
  struct Change {
    double at = 0;
    std::int64_t value = 0;
  };

  /// What is below the axis ("hours", "steps"), and beside it ("devices").
  std::string across{};
  std::string up{};
  /// The first is at 0, each is another value than the one before, and all are before `end`.
  std::vector<Change> changes{};
  double end = 0;
  /// Whether it counts whole things.
  bool whole = false;
};

/// In seconds, minutes, hours or days, as fits its length.
[[nodiscard]] Timeline timeline_of(const Availability& availability);
/// The batch sizes.
[[nodiscard]] Timeline timeline_of(const Trace& trace);

/// A plot for the terminal: as wide as prose, and a line that says what its characters mean where a
/// column has more than one value. Without `utf8` in ASCII alone.
[[nodiscard]] std::string text_plot(const Timeline& timeline, bool utf8, LineWidth width = {});

}  // namespace rubato::app
