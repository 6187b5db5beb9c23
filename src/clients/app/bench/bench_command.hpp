#pragma once

#include <span>
#include <string>

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// `rubato bench`; `arguments` begin after that word. Returns the exit code.
int bench_command(std::span<const std::string> arguments);

/// What can be measured.
[[nodiscard]] std::span<const Command> bench_commands();

}  // namespace rubato::app
