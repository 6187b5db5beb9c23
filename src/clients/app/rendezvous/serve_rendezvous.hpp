#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato rendezvous`: serves until a signal asks it to end, and returns the exit code. Throws
/// Error where the port cannot be had.
[[nodiscard]] int serve_rendezvous(std::span<const std::string> arguments);

}  // namespace rubato::app
