#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "hosts/rendezvous/socket.hpp"
#include "store.hpp"

namespace rubato::hosts_detail {

/// Connects the hosts of a group with each other, by one connection for each pair. The host of the
/// higher rank calls the other one.
///
/// Each end proves to the other one that it knows the token and the other's place, which hosts tell
/// each other through their store alone. Strangers at the port are dropped, whatever they send and
/// whenever they leave: none of their connections ever reaches gloo (docs/adr/0044).
///
/// Not thread-safe: one thread connects with all hosts, in ascending order of their ranks.
class PeerConnector {
 public:
  struct Options {
    std::size_t rank = 0;
    /// Names of all hosts by rank, for messages.
    std::vector<std::string> names{};
    /// Address or network interface to listen at.
    std::string interface {};
    std::string token{};
    /// Time limit for all connections together, from construction on.
    milliseconds patience{};
    /// Called several times a second while the connector waits; an exception from it ends the
    /// waiting. May be empty.
    std::function<void()> look{};
  };
  /// The address at which a host is called, with a number that only hosts of the group learn.
  struct Place {
    sockaddr_storage address{};
    std::int64_t secret = 0;
  };

  /// Throws Error if it cannot listen.
  explicit PeerConnector(Options options);

  [[nodiscard]] const Place& place() const { return place_; }
  /// The connection with another host, whose place this is. Only the proof has been read from it.
  /// Throws HostLost.
  [[nodiscard]] rendezvous_detail::Socket connect(std::size_t host, const Place& theirs);

 private:
  using Socket = rendezvous_detail::Socket;
  // A caller that has not proved yet that it is a host of the group.
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
  // Returns false if the caller can be dropped.
  [[nodiscard]] bool read_from(Caller& caller);

  Options options_;
  Clock::time_point deadline_;
  Socket listener_;
  Place place_;
  // Number of other hosts that have not called yet.
  std::size_t awaited_;
  // Callers in the order in which they came.
  std::list<Caller> callers_;
  // Connections of hosts that called before they were waited for, by rank.
  std::map<std::size_t, Socket> proven_;
};

}  // namespace rubato::hosts_detail

namespace gloo::transport {
class Device;
}  // namespace gloo::transport

namespace rubato::hosts_detail {

/// A device of gloo for one group, whose pairs are connected by a PeerConnector: gloo listens at no
/// port that others reach, and moves bytes only on connections that both ends have authenticated.
/// An error on gloo's thread ends a pair, not the process.
[[nodiscard]] std::shared_ptr<gloo::transport::Device> gloo_device(
    const PeerConnector::Options& options);

}  // namespace rubato::hosts_detail
