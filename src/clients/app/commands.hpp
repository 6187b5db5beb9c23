#pragma once

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// The program itself, as the command that contains all others.
[[nodiscard]] const Command& program();

}  // namespace rubato::app
