#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato man`: prints the manual page of a command, or writes all of them. Returns the exit code;
/// throws Error for a mistake of the user.
[[nodiscard]] int man_command(std::span<const std::string> arguments);

}  // namespace rubato::app
