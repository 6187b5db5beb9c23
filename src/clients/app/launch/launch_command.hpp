#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato launch --hosts N -- train ...`: starts the hosts of a training on this machine. Returns
/// the exit code of the first host that failed, or 0; of elastic hosts, that of the last one that
/// ended. Throws Error for a mistake of the user.
[[nodiscard]] int launch_command(std::span<const std::string> arguments);

}  // namespace rubato::app
