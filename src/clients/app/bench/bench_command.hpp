#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato bench`; `arguments` begin after that word. Returns the exit code.
int bench_command(std::span<const std::string> arguments);

}  // namespace rubato::app
