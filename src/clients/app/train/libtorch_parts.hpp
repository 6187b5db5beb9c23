#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/loop/hosts.hpp>

#include "clients/app/hosts/host_arguments.hpp"

namespace rubato::app {

/// c10d_hosts() with the options of the command line. Throws Error in the same cases.
[[nodiscard]] std::shared_ptr<Hosts> connect_hosts(const HostArguments& hosts,
                                                   std::vector<NamedText> equal);

/// elastic_hosts() with the options of the command line, as a JoinHosts.
[[nodiscard]] std::shared_ptr<ElasticHosts> join_hosts(const HostArguments& hosts,
                                                       ElasticOptions options);

/// The answer of rubato-train to `rubato doctor`: probe_this_process() and the versions and kernels
/// of libtorch, as JSON.
[[nodiscard]] std::string doctor_probe();

}  // namespace rubato::app
