#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <rubato/rendezvous/rendezvous_server.hpp>
#include <rubato/runtime/hosts.hpp>

namespace rubato {

/// How a host meets the others, and what it exchanges with them by.
struct C10dOptions {
  /// The hosts of the run, from 1 to kMaxHosts, and which of them this process is, from 0.
  int count = 1;
  int rank = 0;
  /// Where the hosts meet: a name or an address that all of them reach, and a port from 1 to 65535.
  std::string address = "127.0.0.1";
  int port = 29500;
  /// The name of the run in a store that somebody else serves (RendezvousServer). A name is used
  /// once. Empty: host 0 serves the store.
  std::string run{};
  /// The store is a TCPStore of c10d's, such as torchrun's agent serves, in place of a
  /// RendezvousServer's; only where somebody else serves it.
  bool is_tcp_store = false;
  /// The address, or the network interface, at which the other hosts reach this one.
  std::string interface = "127.0.0.1";
  /// How much of a step this host is to compute, relative to the others: a finite number above 0.
  double weight = 1;
  /// A secret that all hosts share; empty is none. It is never sent.
  std::string token{};
  /// What has to be the same on all hosts. Texts are sent as they are.
  std::vector<NamedText> equal{};
  /// How long this host waits for another one, at least a second: until all have come, and in each
  /// exchange(). Longer than the longest step, evaluation and checkpoint together.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

inline constexpr int kMaxHosts = 1024;

/// Meets the other hosts: in a store (RendezvousServer) to compare what has to be equal, and for
/// the exchanges in a ProcessGroupGloo of libtorch's c10d. Returns when all hosts are connected
/// with each other.
///
/// Throws Error where an option is out of its range; where a host does not come within the time
/// limit; and where one is of another version of rubato's protocol, knows another token, or has
/// said something else that has to be equal. All hosts then throw, and say which host differs.
///
/// exchange() throws HostLost, with the host where it is known, when a host has gone and when one
/// is silent for longer than the time limit; and Error when one gives another number of bytes than
/// this one waits for. The hosts are then of no more use: those left have to meet anew.
///
/// Nobody is authenticated but by the token, and nothing is encrypted: docs/hosts.md.
[[nodiscard]] std::shared_ptr<Hosts> c10d_hosts(const C10dOptions& options);

}  // namespace rubato
