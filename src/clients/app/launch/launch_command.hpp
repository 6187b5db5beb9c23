#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato launch --hosts N -- train ...`: starts the hosts of a training on this machine, and
/// returns the exit code of the first that failed, or 0. Throws Error for what the user got wrong.
[[nodiscard]] int launch_command(std::span<const std::string> arguments);

}  // namespace rubato::app
