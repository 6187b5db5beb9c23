#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato report`: writes a page of HTML about runs, or about an experiment. `arguments` begin
/// behind the name of the command. Returns the exit code; throws Error for what the user got wrong.
[[nodiscard]] int report_command(std::span<const std::string> arguments);

}  // namespace rubato::app
