#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato list`: prints the strategies that options take by name, with their arguments, or the
/// records that rubato writes.
/// `arguments` begin behind the name of the command. Returns the exit code; throws Error for what
/// the user got wrong.
[[nodiscard]] int list_command(std::span<const std::string> arguments);

}  // namespace rubato::app
