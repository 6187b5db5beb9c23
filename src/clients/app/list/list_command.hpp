#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato list`: prints the strategies that options take by name, with their arguments, or the
/// records that rubato writes. Returns the exit code; throws Error for a mistake of the user.
[[nodiscard]] int list_command(std::span<const std::string> arguments);

}  // namespace rubato::app
