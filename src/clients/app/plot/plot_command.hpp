#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato plot`: plots curves of runs, in the terminal or as a picture. Returns the exit code;
/// throws Error for a mistake of the user and for files that do not belong to a run, and
/// OutputError.
[[nodiscard]] int plot_command(std::span<const std::string> arguments);

}  // namespace rubato::app
