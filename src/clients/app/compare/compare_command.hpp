#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato compare`: runs an experiment and prints what it shows. Returns the exit code; throws
/// Error for what the user got wrong.
[[nodiscard]] int compare_command(std::span<const std::string> arguments);

}  // namespace rubato::app
