#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato simulate`: predicts how long trainings would take on imagined clusters. Returns the exit
/// code; throws Error for a mistake of the user.
int simulate_command(std::span<const std::string> arguments);

}  // namespace rubato::app
