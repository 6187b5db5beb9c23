#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato report`: writes a page of HTML about runs, or about an experiment. Returns the exit
/// code; throws Error for a mistake of the user.
[[nodiscard]] int report_command(std::span<const std::string> arguments);

}  // namespace rubato::app
