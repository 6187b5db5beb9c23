#include "connect_hosts.hpp"

#include <utility>

namespace rubato::app {

namespace {

C10dOptions options_of(const HostArguments& hosts, std::vector<NamedText> equal) {
  return {.count = hosts.count,
          .rank = hosts.rank,
          .address = hosts.address,
          .port = hosts.port,
          .run = hosts.run,
          .is_tcp_store = hosts.is_tcp_store,
          .interface = hosts.interface,
          .weight = hosts.weight,
          .token = hosts.token_file.empty() ? "" : token_in(hosts.token_file),
          .equal = std::move(equal),
          .timeout = hosts.timeout};
}

}  // namespace

std::shared_ptr<Hosts> connect_hosts(const HostArguments& hosts, std::vector<NamedText> equal) {
  return c10d_hosts(options_of(hosts, std::move(equal)));
}

std::shared_ptr<ElasticHosts> join_hosts(const HostArguments& hosts, ElasticOptions options) {
  options.meeting = options_of(hosts, std::move(options.meeting.equal));
  options.least = hosts.least;
  options.most = hosts.most;
  return elastic_hosts(std::move(options));
}

}  // namespace rubato::app
