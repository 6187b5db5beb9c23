#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato hosts HOST:PORT/NAME`: prints how a run of hosts that come and go stands. Returns the
/// exit code; throws Error for what the user got wrong, and HostLost where the rendezvous does not
/// answer.
[[nodiscard]] int show_hosts(std::span<const std::string> arguments);

}  // namespace rubato::app
