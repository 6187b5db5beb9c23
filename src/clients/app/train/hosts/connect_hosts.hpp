#pragma once

#include <memory>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/loop/hosts.hpp>

#include "host_arguments.hpp"

namespace rubato::app {

/// c10d_hosts() with the options of the command line. Throws Error in the same cases.
[[nodiscard]] std::shared_ptr<Hosts> connect_hosts(const HostArguments& hosts,
                                                   std::vector<NamedText> equal);

/// elastic_hosts() with the options of the command line, as a JoinHosts.
[[nodiscard]] std::shared_ptr<ElasticHosts> join_hosts(const HostArguments& hosts,
                                                       ElasticOptions options);

}  // namespace rubato::app
