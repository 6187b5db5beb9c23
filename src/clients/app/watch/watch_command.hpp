#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato watch`: shows runs from their folders until they have ended. Returns the exit code;
/// throws Error for a mistake of the user, and for files that do not belong to a run.
[[nodiscard]] int watch_command(std::span<const std::string> arguments);

}  // namespace rubato::app
