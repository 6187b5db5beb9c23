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

/// "all", or "steps=A..B": counted from 1, both of them included. Empty text is as "all". Throws
/// Error.
[[nodiscard]] TimelineSteps parse_timeline(const std::string& text);

}  // namespace rubato
