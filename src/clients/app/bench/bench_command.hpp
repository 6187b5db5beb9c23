#pragma once

#include <span>
#include <string>

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// `rubato bench`: measures parts of training. `arguments` begin after the name of the command.
/// Returns the exit code; throws Error for a mistake of the user.
int bench_command(std::span<const std::string> arguments);

/// The benchmarks, as commands.
[[nodiscard]] std::span<const Command> bench_commands();

}  // namespace rubato::app
