#pragma once

#include <span>
#include <string>

#include "clients/app/train/hosts/host_arguments.hpp"

namespace rubato::app {

/// What `rubato hosts` is asked for.
struct HostsArguments {
  /// Where the hosts meet, and the name of their run; the rest is not asked for.
  HostArguments meeting{};
  bool json = false;
};

/// Reads the arguments behind the command. Throws HelpAsked, and Error for what the user got wrong.
[[nodiscard]] HostsArguments parse_hosts_arguments(std::span<const std::string> arguments);

}  // namespace rubato::app
