#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato completion`: prints the script of a shell or, if the arguments contain "--", the
/// completions of the last word after it. Returns the exit code; throws Error for a mistake of the
/// user.
[[nodiscard]] int completion_command(std::span<const std::string> arguments);

}  // namespace rubato::app
