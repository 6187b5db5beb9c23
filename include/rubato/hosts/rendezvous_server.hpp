#pragma once

#include <memory>
#include <string>

namespace rubato {

struct RendezvousOptions {
  /// An address or a name of this machine to listen at; empty is all network interfaces.
  std::string address{};
  /// A secret without which nobody reaches the store; empty is none. It is never sent.
  std::string token{};
};

/// Serves a store in which hosts meet, for any number of runs, as long as it lives: a thread of its
/// own. What it survives, and what it limits, is in docs/hosts.md.
class RendezvousServer {
 public:
  /// `port` 0 takes one that is free. Throws Error where it cannot be had.
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
