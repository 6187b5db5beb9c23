#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato man`: prints the page of a command, or writes all of them. Returns the exit code; throws
/// Error for what the user got wrong.
[[nodiscard]] int man_command(std::span<const std::string> arguments);

}  // namespace rubato::app
