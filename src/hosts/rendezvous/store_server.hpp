#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace rubato::rendezvous_detail {

/// Serves a store of keys and values to any number of clients, on a thread of its own, and survives
/// whatever they send: no client can stop the thread, delay another one by more than one of its own
/// messages, or take memory without end (docs/hosts.md).
///
/// Thread safety: all functions may be called from any thread.
class StoreServer {
 public:
  struct Options {
    /// An address or a name of this machine to listen at; empty is all of them.
    std::string address{};
    /// 0 is any that is free.
    int port = 0;
    /// Who does not know it is refused; an empty one is none, and everybody knows it.
    std::string token{};
    /// How long a client may take to prove that it may speak, to send a message whose first byte
    /// has come, and to take an answer.
    std::chrono::milliseconds patience = std::chrono::seconds(10);
    /// Connections, in all; and of clients that have not proved yet that they may speak. Beyond the
    /// latter, whoever has come first of them has to go.
    std::size_t max_connections = 4096;
    std::size_t max_unproven = 256;
    /// Of keys and values that are kept; and of messages on their way, of all clients together.
    /// Beyond the latter, the client with the most of them has to go.
    std::size_t max_kept_bytes = std::size_t{256} << 20U;
    std::size_t max_buffered_bytes = std::size_t{64} << 20U;
  };

  /// Throws Error where it cannot listen.
  explicit StoreServer(const Options& options);
  /// Closes all connections.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  [[nodiscard]] int port() const;
  /// How many connections were refused for another token.
  [[nodiscard]] int refused() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace rubato::rendezvous_detail
