#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato simulate`: what trainings would take on imagined clusters, without training. Returns the
/// exit code; throws Error for a mistake of the user's.
int simulate_command(std::span<const std::string> arguments);

}  // namespace rubato::app
