#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>

#include "connection.hpp"
#include "socket.hpp"

namespace rubato::rendezvous_detail {

/// Serves a store of keys and values to any number of clients, on a thread of its own, and survives
/// whatever they send: no client can stop the thread, delay another one by more than one of its own
/// messages, or use unlimited memory (docs/hosts.md).
///
/// Thread safety: all functions may be called from any thread.
class StoreServer {
 public:
  struct Options {
    /// Address or name of this machine to listen at; empty means all of its addresses.
    std::string address{};
    /// Port to listen at; 0 means any that is free.
    int port = 0;
    /// Token that clients have to prove; with an empty one no client is refused.
    std::string token{};
    /// Time limit for a client to prove that it may speak, to send a message whose first byte has
    /// come, and to take an answer.
    std::chrono::milliseconds patience = std::chrono::seconds(10);
    /// Largest number of connections, and of those whose clients have not proved yet that they may
    /// speak. Beyond the latter, the oldest of these is closed.
    std::size_t max_connections = 4096;
    std::size_t max_unproven = 256;
    /// Largest number of bytes of keys and values, and of messages on their way, of all clients
    /// together. Beyond the latter, the connection with the most of them is closed.
    std::size_t max_kept_bytes = std::size_t{256} << 20U;
    std::size_t max_buffered_bytes = std::size_t{64} << 20U;
  };

  /// Throws Error if it cannot listen.
  explicit StoreServer(const Options& options);
  /// Closes all connections.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  /// Number of connections that were refused because of another token.
  [[nodiscard]] int refused() const { return refused_; }

 private:
  using Connections = std::list<Connection>;

  void run();
  // Returns the result of poll() for the wake-up, the listener and each connection.
  [[nodiscard]] std::vector<pollfd> wait();
  void serve(Connections::iterator connection, bool is_ready, Clock::time_point now);
  void accept_all();
  [[nodiscard]] bool close_oldest_unproven();
  void limit_buffers();

  Options options_;
  WakeUp wake_up_;
  Socket listener_;
  // Connections in the order in which they came.
  Connections connections_;
  KeyValues values_;
  int port_;
  std::atomic<int> refused_ = 0;
  // Time until which nobody is accepted.
  std::optional<Clock::time_point> muted_;
  // The thread is the last member because it uses all of the above.
  std::thread thread_;
};

}  // namespace rubato::rendezvous_detail
