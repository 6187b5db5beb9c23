#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/hosts/rendezvous_server.hpp>

#include "store_server.hpp"

namespace rubato {

using rendezvous_detail::StoreServer;

class RendezvousServer::Implementation {
 public:
  explicit Implementation(const StoreServer::Options& options) : server(options) {}
  StoreServer server;
};

RendezvousServer::RendezvousServer(int port, const RendezvousOptions& options) {
  constexpr int kMaxPort = 65'535;
  if (port < 0 || port > kMaxPort) {
    throw Error(
        fmt::format("the port {}; accepted: 1 to {}, or 0 for any that is free", port, kMaxPort));
  }
  implementation_ = std::make_unique<Implementation>(
      StoreServer::Options{.address = options.address, .port = port, .token = options.token});
}
RendezvousServer::~RendezvousServer() = default;

int RendezvousServer::port() const {
  return implementation_->server.port();
}

}  // namespace rubato
