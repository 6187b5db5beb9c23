#pragma once

#include <span>
#include <string>

#include "clients/app/train/hosts/host_arguments.hpp"

namespace rubato::app {

/// The arguments of `rubato hosts`.
struct HostsArguments {
  /// The rendezvous of the hosts, the name of their run and their token; the other members are
  /// unused.
  HostArguments meeting{};
  bool json = false;
};

/// Reads the arguments after the name of the command. Throws HelpAsked, and Error for a mistake of
/// the user.
[[nodiscard]] HostsArguments parse_hosts_arguments(std::span<const std::string> arguments);

}  // namespace rubato::app
