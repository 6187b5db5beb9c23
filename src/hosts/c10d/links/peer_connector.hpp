#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "hosts/c10d/store/store.hpp"
#include "hosts/rendezvous/wire/socket.hpp"

namespace rubato::c10d_hosts_detail {

/// Connects the hosts of a group with each other, by one connection for each two of them. Of the
/// two, the one of the higher rank calls the other one.
///
/// Each end proves to the other one that it knows the token and the other's place, which hosts tell
/// each other through their store alone. Strangers at the port are let go of, whatever they send
/// and whenever they leave: none of their connections ever reaches gloo (docs/adr/0044).
///
/// Not thread-safe: one thread connects with all hosts, in ascending order of their ranks.
class PeerConnector {
 public:
  struct Options {
    std::size_t rank = 0;
    /// These are the names of all hosts by rank, for messages.
    std::vector<std::string> names{};
    /// An address or a network interface to listen at.
    std::string interface {};
    std::string token{};
    /// For all connections together, from now on.
    milliseconds patience{};
    /// Called several times a second while it waits; whatever it throws ends that. May be empty.
    std::function<void()> look{};
  };
  /// A host is called at this address, with a number that only hosts of the group learn.
  struct Place {
    sockaddr_storage address{};
    std::int64_t secret = 0;
  };

  /// Throws Error where it cannot listen.
  explicit PeerConnector(Options options);

  [[nodiscard]] const Place& place() const { return place_; }
  /// The connection with another host, whose place this is. Nothing has been read from it that is
  /// not part of the proof. Throws HostLost.
  [[nodiscard]] rendezvous_detail::Socket connect(std::size_t host, const Place& theirs);

 private:
  using Socket = rendezvous_detail::Socket;
  // Somebody who has not proved yet to be a host of the group.
  struct Caller {
    Socket socket;
    std::string said{};
    Clock::time_point deadline;
  };

  [[nodiscard]] Socket call(const Place& theirs) const;
  void introduce(const Socket& socket, const Place& theirs) const;
  void wait(rendezvous_detail::Until until, const Socket& socket) const;
  void look() const;

  [[nodiscard]] Socket awaited(std::size_t host);
  void let_in();
  // False where the caller is of no further use here.
  [[nodiscard]] bool hear(Caller& caller);

  Options options_;
  Clock::time_point deadline_;
  Socket listener_;
  Place place_;
  // How many other hosts are still to call.
  std::size_t awaited_;
  // In the order in which they came.
  std::list<Caller> callers_;
  // Hosts that have called before they were waited for.
  std::map<std::size_t, Socket> proven_;
};

}  // namespace rubato::c10d_hosts_detail
