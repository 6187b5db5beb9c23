#pragma once

#include <span>
#include <string>

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// `rubato data get`: fetches a known data set. Returns the exit code; throws Error for a mistake
/// of the user.
[[nodiscard]] int data_command(std::span<const std::string> arguments);

/// The commands of `rubato data`: get.
[[nodiscard]] std::span<const Command> data_commands();

}  // namespace rubato::app
