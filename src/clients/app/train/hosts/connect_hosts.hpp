#pragma once

#include <memory>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/loop/hosts.hpp>

#include "host_arguments.hpp"

namespace rubato::app {

/// c10d_hosts() of what the command line says. Throws Error as it does.
[[nodiscard]] std::shared_ptr<Hosts> connect_hosts(const HostArguments& hosts,
                                                   std::vector<NamedText> equal);

/// elastic_hosts() of it: JoinHosts.
[[nodiscard]] std::shared_ptr<ElasticHosts> join_hosts(const HostArguments& hosts,
                                                       ElasticOptions options);

}  // namespace rubato::app
