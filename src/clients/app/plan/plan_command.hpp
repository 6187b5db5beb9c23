#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato plan`: prints what a trace will do before anything is trained. `arguments` begin behind
/// the name of the command. Returns the exit code; throws Error for what the user got wrong.
[[nodiscard]] int plan_command(std::span<const std::string> arguments);

}  // namespace rubato::app
