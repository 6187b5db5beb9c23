#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato completion`: prints the script of a shell, or, behind "--", what completes the last
/// word. Returns the exit code; throws Error for what the user got wrong.
[[nodiscard]] int completion_command(std::span<const std::string> arguments);

}  // namespace rubato::app
