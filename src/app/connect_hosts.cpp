#include "app/connect_hosts.hpp"

#include <utility>

#include <rubato/c10d/c10d_hosts.hpp>

namespace rubato::app {

std::shared_ptr<Hosts> connect_hosts(const HostArguments& hosts, std::vector<NamedText> equal) {
  return c10d_hosts({.count = hosts.count,
                     .rank = hosts.rank,
                     .address = hosts.address,
                     .port = hosts.port,
                     .run = hosts.run,
                     .interface = hosts.interface,
                     .weight = hosts.weight,
                     .token = hosts.token_file.empty() ? "" : token_in(hosts.token_file),
                     .equal = std::move(equal),
                     .timeout = hosts.timeout});
}

}  // namespace rubato::app
