#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato hosts HOST:PORT/NAME`: prints the state of a run on elastic hosts. Returns the exit
/// code; throws Error for a mistake of the user, and HostLost if the rendezvous does not answer.
[[nodiscard]] int show_hosts(std::span<const std::string> arguments);

}  // namespace rubato::app
