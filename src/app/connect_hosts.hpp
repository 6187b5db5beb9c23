#pragma once

#include <memory>
#include <vector>

#include <rubato/runtime/hosts.hpp>

#include "app/host_arguments.hpp"

namespace rubato::app {

/// c10d_hosts() of what the command line says. Throws Error as it does.
[[nodiscard]] std::shared_ptr<Hosts> connect_hosts(const HostArguments& hosts,
                                                   std::vector<NamedText> equal);

}  // namespace rubato::app
