#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato doctor`: says what would make training on this machine slow or wrong. Returns an
/// ExitCode; throws Error for what the user got wrong.
[[nodiscard]] int doctor_command(std::span<const std::string> arguments);

}  // namespace rubato::app
