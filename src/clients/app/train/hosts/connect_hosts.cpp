#include "connect_hosts.hpp"

#include <utility>

#include <rubato/hosts/c10d_hosts.hpp>

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

std::shared_ptr<ElasticHosts> join_hosts(const HostArguments& hosts, std::vector<NamedText> equal,
                                         std::function<bool()> interrupted,
                                         std::function<void(const std::string&)> tell) {
  return elastic_hosts({.meeting = options_of(hosts, std::move(equal)),
                        .least = hosts.least,
                        .most = hosts.most,
                        .interrupted = std::move(interrupted),
                        .tell = std::move(tell)});
}

}  // namespace rubato::app
