#pragma once

#include <span>
#include <string>

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// `rubato trace import|generate|convert|show`: reads, makes and shows traces and what devices
/// there are over time. `arguments` begin behind the name of the command. Returns the exit code;
/// throws Error for what the user got wrong.
[[nodiscard]] int trace_command(std::span<const std::string> arguments);

/// import, generate, convert, show.
[[nodiscard]] std::span<const Command> trace_commands();

}  // namespace rubato::app
