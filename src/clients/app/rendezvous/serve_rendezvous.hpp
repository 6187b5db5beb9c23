#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato rendezvous`: serves until a signal asks it to end, and returns the exit code. Throws
/// Error if the port is not available.
[[nodiscard]] int serve_rendezvous(std::span<const std::string> arguments);

}  // namespace rubato::app
