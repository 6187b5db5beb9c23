#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato doctor`: reports what would make training on this machine slow or wrong. Returns an
/// ExitCode; throws Error for a mistake of the user.
[[nodiscard]] int doctor_command(std::span<const std::string> arguments);

}  // namespace rubato::app
