#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <rubato/base/index.hpp>

namespace rubato {

/// The steps that --timeline records.
struct TimelineSteps {
  StepIndex first{};
  StepIndex last{std::numeric_limits<std::int64_t>::max()};
};

/// Parses "all" or "steps=A..B", both counted from 1 and included. Empty text means "all". Throws
/// Error.
[[nodiscard]] TimelineSteps parse_timeline(const std::string& text);

}  // namespace rubato
