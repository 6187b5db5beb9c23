#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/hosts/rendezvous_server.hpp>
#include <rubato/loop/hosts.hpp>

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

/// How a host takes part in a run whose hosts come and go.
struct ElasticOptions {
  /// Where they meet, and what has to be equal. The store has to outlive every host: `run` is not
  /// empty. `count` is of how many hosts the run begins; fewer begin it when the time limit has
  /// passed. `rank` is not used: hosts are numbered as they come.
  C10dOptions meeting{};
  /// With fewer the hosts wait for others; 1 to `meeting.count`.
  int least = 1;
  /// More are refused; `meeting.count` to kMaxHosts.
  int most = kMaxHosts;
  /// The steps of the newest checkpoint that this host could go on from, if it has one. A run of
  /// that name that was stopped, after no more steps, or whose hosts have all gone, is opened again
  /// by it: those that come then go on from the newest checkpoint that one of them brings, as if
  /// nobody had trained before.
  std::optional<std::int64_t> brings{};
  /// If this is set, the host waits for another one to open the run, up to the time limit.
  bool waits_for_opening = false;
  /// Asked while the host waits for others: true makes regroup() throw HostLost. May be empty.
  std::function<bool()> interrupted{};
  /// Hears, in a line, what a person should know while the host waits. May be empty.
  std::function<void(const std::string& line)> tell{};
};

/// A host among those that come and go, on libtorch's c10d (c10d_hosts()). It has met nobody before
/// its first regroup(). Until it is destroyed a thread of its own tells the others that it is
/// there. A host whose thread is silent for five seconds, or whose process is seen to have ended,
/// is lost; so is one that lets the others wait for longer than the time limit, in a step or when a
/// group is formed. Of two that do not reach each other the group goes on without one, whose
/// regroup() throws HostLost, as it does where too few reach each other.
///
/// Throws Error where an option is out of its range or the store cannot be reached. The others
/// refuse a host that knows another token, or has said something else that has to be equal.
[[nodiscard]] std::shared_ptr<ElasticHosts> elastic_hosts(ElasticOptions options);

}  // namespace rubato
