#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato compare`: runs an experiment and prints its result. Returns the exit code; throws Error
/// for a mistake of the user.
[[nodiscard]] int compare_command(std::span<const std::string> arguments);

}  // namespace rubato::app
