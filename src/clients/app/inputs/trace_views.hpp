#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/text/text.hpp"

namespace rubato::app {

/// A number that changes over time, or over steps; it is drawn as a plot.
struct Timeline {
  /// The number is `value` from `at` on.
  struct Change {
    double at = 0;
    std::int64_t value = 0;
  };

  /// The label of the horizontal axis ("hours", "steps"), and that of the vertical one ("devices").
  std::string across{};
  std::string up{};
  /// The first change is at 0, each has a value other than the one before, and all are before
  /// `end`.
  std::vector<Change> changes{};
  double end = 0;
  /// True if the horizontal axis counts whole things.
  bool whole = false;
};

/// The devices over time, in seconds, minutes, hours or days, depending on the length.
[[nodiscard]] Timeline timeline_of(const Availability& availability);
/// The batch sizes over the steps.
[[nodiscard]] Timeline timeline_of(const Trace& trace);

/// A plot for the terminal, as wide as prose. A legend explains its characters if some column
/// covers several values. Without `utf8` it is plain ASCII.
[[nodiscard]] std::string text_plot(const Timeline& timeline, bool utf8, LineWidth width = {});

/// A few lines about an availability or a trace; the first one names its source.
[[nodiscard]] std::string summary_text(const Availability& availability, LineWidth width = {});
[[nodiscard]] std::string summary_text(const Trace& trace, LineWidth width = {});

/// The prices of a device for an hour, in half a line.
[[nodiscard]] std::string prices_text(const PriceSummary& prices);

/// The summaries as JSON: that of an availability if there is one zone.
[[nodiscard]] std::string summary_json(const Zones& zones);
[[nodiscard]] std::string summary_json(const Trace& trace);
/// The JSON Schema of both.
[[nodiscard]] nlohmann::ordered_json summary_schema();

/// "3 h 45 min", "12 s": the two largest units of a time in seconds.
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace rubato::app
