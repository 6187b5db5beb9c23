#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato metrics RUN`: prints the metrics of a run as CSV. Returns the exit code; throws Error
/// for a mistake of the user and for files that are not metrics.
[[nodiscard]] int metrics_command(std::span<const std::string> arguments);

}  // namespace rubato::app
