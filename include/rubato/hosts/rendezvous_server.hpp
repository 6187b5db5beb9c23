#pragma once

#include <memory>
#include <string>

namespace rubato {

struct RendezvousOptions {
  /// Address or name of this machine to listen at; empty means all network interfaces.
  std::string address{};
  /// Secret without which nobody reaches the store; empty means none. It is never sent.
  std::string token{};
};

/// Serves a store in which hosts meet, for any number of runs, on a thread of its own until it is
/// destroyed. docs/hosts.md says what it survives and what it limits.
class RendezvousServer {
 public:
  /// Listens at `port`, or at any free one if that is 0. Throws Error if it cannot.
  explicit RendezvousServer(int port, const RendezvousOptions& options = {});
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  [[nodiscard]] int port() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rubato
