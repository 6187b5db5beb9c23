#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato plot`: curves of runs, in the terminal or as a picture. Returns the exit code; throws
/// Error for what the user got wrong, and for files that are none of a run, OutputError.
[[nodiscard]] int plot_command(std::span<const std::string> arguments);

}  // namespace rubato::app
