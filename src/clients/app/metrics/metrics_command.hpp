#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato metrics RUN`: prints lines of a run's metrics as CSV. Returns the exit code; throws
/// Error for what the user got wrong and for metrics that are none.
[[nodiscard]] int metrics_command(std::span<const std::string> arguments);

}  // namespace rubato::app
