#pragma once

#include <span>
#include <string>

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// `rubato trace import|generate|convert|show`: reads, makes and shows traces and the availability
/// of devices over time. Returns the exit code; throws Error for a mistake of the user.
[[nodiscard]] int trace_command(std::span<const std::string> arguments);

/// The commands of `rubato trace`: import, generate, convert, show.
[[nodiscard]] std::span<const Command> trace_commands();

}  // namespace rubato::app
