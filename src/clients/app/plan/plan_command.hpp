#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato plan`: prints what a trace will do before anything is trained. Returns the exit code;
/// throws Error for a mistake of the user.
[[nodiscard]] int plan_command(std::span<const std::string> arguments);

}  // namespace rubato::app
