#pragma once

#include <span>
#include <string>

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// `rubato data get`: fetches a known data set. Returns the exit code; throws Error for what the
/// user got wrong.
[[nodiscard]] int data_command(std::span<const std::string> arguments);

/// get.
[[nodiscard]] std::span<const Command> data_commands();

}  // namespace rubato::app
