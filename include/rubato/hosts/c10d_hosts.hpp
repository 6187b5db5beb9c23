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

/// Options of a host that meets the others (c10d_hosts()).
struct C10dOptions {
  /// Number of hosts in the run, from 1 to kMaxHosts, and the rank of this process among them, from
  /// 0.
  int count = 1;
  int rank = 0;
  /// Address at which the hosts meet: a name or an address that all of them reach, and a port from
  /// 1 to 65535.
  std::string address = "127.0.0.1";
  int port = 29500;
  /// Name of the run in a store that another process serves (RendezvousServer). A name can be used
  /// only once. If it is empty, host 0 serves the store.
  std::string run{};
  /// The store is a TCPStore of c10d, such as the one that torchrun's agent serves, instead of a
  /// RendezvousServer's. Allowed only if another process serves the store.
  bool is_tcp_store = false;
  /// Address or network interface at which the other hosts reach this one.
  std::string interface = "127.0.0.1";
  /// Share of a step that this host computes, relative to the others: a finite number above 0.
  double weight = 1;
  /// Secret that all hosts share; empty means none. It is never sent.
  std::string token{};
  /// Texts that have to be the same on all hosts. They are sent in the clear.
  std::vector<NamedText> equal{};
  /// Time limit for waiting for another host, at least a second: until all have come, and in each
  /// exchange(). It has to be longer than the longest step, evaluation and checkpoint together.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);

  friend bool operator==(const C10dOptions&, const C10dOptions&) = default;
};

inline constexpr int kMaxHosts = 1024;

/// Meets the other hosts: compares what has to be equal in a store (RendezvousServer), and connects
/// a ProcessGroupGloo of libtorch's c10d for the exchanges. Returns when all hosts are connected
/// with each other.
///
/// Throws Error if an option is out of its range, if a host does not come within the time limit,
/// and if one has another version of rubato's protocol, another token, or another text that has to
/// be equal. All hosts then throw, and say which host differs.
///
/// exchange() throws HostLost, with the host if it is known, when a host has gone or is silent for
/// longer than the time limit; and Error when a host sends another number of bytes than this one
/// expects. The hosts cannot be used after that: those left have to meet again.
///
/// The token is the only authentication, and nothing is encrypted: docs/hosts.md.
[[nodiscard]] std::shared_ptr<Hosts> c10d_hosts(const C10dOptions& options);

/// Options of a host in a run whose hosts come and go.
struct ElasticOptions {
  /// The meeting point, and the texts that have to be equal. The store has to outlive every host,
  /// so `run` must not be empty. The run begins with `count` hosts, or with fewer when the time
  /// limit has passed. `rank` is not used: hosts are numbered in the order in which they come.
  C10dOptions meeting{};
  /// Smallest number of hosts that compute, 1 to `meeting.count`; fewer wait for others.
  int least = 1;
  /// Largest number of hosts, `meeting.count` to kMaxHosts; more are refused.
  int most = kMaxHosts;
  /// Steps of the newest checkpoint that this host could continue from, if it has one. The host
  /// opens a run of that name again if the run was stopped after no more steps than these, or if
  /// all of its hosts have gone: the hosts that come then continue from the newest checkpoint that
  /// one of them brings, as if nobody had trained before.
  std::optional<std::int64_t> brings{};
  /// If this is set, the host waits for another one to open the run, up to the time limit.
  bool waits_for_opening = false;
  /// Asked while the host waits for others: true makes regroup() throw HostLost. May be empty.
  std::function<bool()> interrupted{};
  /// Receives lines for people about what the host is waiting for. May be empty.
  std::function<void(const std::string& line)> report{};
};

/// A host among those that come and go, on libtorch's c10d (c10d_hosts()). It is not connected
/// before its first regroup(). Until it is destroyed, a thread of its own tells the others that it
/// is alive. A host is lost if its thread is silent for five seconds, if its process is seen to
/// have ended, or if it lets the others wait for longer than the time limit, in a step or when a
/// group is formed. If two hosts do not reach each other, the group continues without one of them,
/// whose regroup() throws HostLost; so does regroup() if too few hosts reach each other.
///
/// Throws Error if an option is out of its range or the store cannot be reached. The others refuse
/// a host that has another token, or another text that has to be equal.
[[nodiscard]] std::shared_ptr<ElasticHosts> elastic_hosts(ElasticOptions options);

}  // namespace rubato
