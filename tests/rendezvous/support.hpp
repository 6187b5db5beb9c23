#pragma once

#include <chrono>
#include <string>

#include "hosts/rendezvous/store_client.hpp"
#include "hosts/rendezvous/store_server.hpp"

namespace rubato::rendezvous_detail {

/// For a client of the store that this server serves.
inline StoreClient::Options at(const StoreServer& server, const std::string& token = "") {
  return {.host = "127.0.0.1",
          .port = server.port(),
          .token = token,
          .timeout = std::chrono::minutes(1)};
}

}  // namespace rubato::rendezvous_detail
