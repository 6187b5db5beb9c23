#pragma once

#include <string>

#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/text/wrapped.hpp"

namespace rubato::app {

/// A few lines about an availability or a trace; the first one names its source.
[[nodiscard]] std::string summary_text(const Availability& availability, LineWidth width = {});
[[nodiscard]] std::string summary_text(const Trace& trace, LineWidth width = {});

/// The same as JSON: {"kind": "availability", "source", "length_seconds", "sample_gap_seconds",
/// "fewest", "most", "mean", "changes", "changes_per_hour", "share_at_zero",
/// "longest_at_zero_seconds"}, or {"kind": "trace", "source", "steps", "samples", "fewest", "most",
/// "mean", "changes", "fewest_cores", "most_cores"}; null for absent values.
[[nodiscard]] std::string summary_json(const Availability& availability);
[[nodiscard]] std::string summary_json(const Trace& trace);

/// "3 h 45 min", "12 s": the two largest units of a time in seconds.
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace rubato::app
