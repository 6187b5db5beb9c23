#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <thread>

#include "hosts/rendezvous/socket.hpp"
#include "hosts/run_status/members.hpp"
#include "store.hpp"

namespace rubato::hosts_detail {

/// Listens at an address, or at the first one of a network interface, at any free port. Throws
/// Error if it cannot.
[[nodiscard]] rendezvous_detail::Socket listener_at(const std::string& interface);

/// A listener at which other hosts test whether they reach this one. It listens for as long as the
/// host lives, and a thread closes each connection at once; no data is exchanged.
class ProbeListener {
 public:
  /// Listens as listener_at() does.
  explicit ProbeListener(const std::string& interface);
  /// Waits for the thread.
  ~ProbeListener();
  ProbeListener(const ProbeListener&) = delete;
  ProbeListener& operator=(const ProbeListener&) = delete;

  /// "HOST:PORT", in numbers.
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  void accept_and_close() const;

  rendezvous_detail::WakeUp wake_up_;
  rendezvous_detail::Socket listener_;
  std::string address_;
  // The thread is the last member because it uses all of the above.
  std::thread thread_;
};

/// Connects to these addresses all at once, except those that are empty. Returns why one cannot be
/// reached by `deadline`, by its index in the list.
[[nodiscard]] std::map<std::size_t, std::string> unreachable(std::span<const std::string> addresses,
                                                             Clock::time_point deadline);

/// A host of a generation, as the others try to reach it.
struct Peer {
  HostNumber host = 0;
  /// Name of the host in messages.
  std::string name{};
  /// ProbeListener::address() of the host.
  std::string probe_address{};
};

/// Tests whether the hosts of a generation reach each other before they connect (docs/adr/0052).
class Links {
 public:
  /// Listens for probes at the address or network interface at which the others reach this host.
  /// Throws Error if it cannot listen.
  explicit Links(const std::string& interface) : listener_(interface) {}

  [[nodiscard]] const std::string& probe_address() const { return listener_.address(); }

  /// Called by all hosts of a generation, with the store of its connections; `rank` is this host's.
  /// Each tries every other one and tells the result, so that all return, or throw HostLost with
  /// the sentence that says why, at about the same time: within `patience`, half of which is for
  /// the trial.
  void probe_all(Store& store, std::span<const Peer> peers, std::size_t rank,
                 milliseconds patience);

  /// Throws HostLost if one of them cannot be reached now. If only a host's process has ended, its
  /// machine says so at once.
  void require_reachable(std::span<const Peer> peers, std::size_t rank) const;

  /// Hosts that this one has not reached in the last two trials in a row: a single failure may have
  /// been momentary.
  [[nodiscard]] const Cuts& cuts() const { return cuts_; }

 private:
  // The hosts that this one does not reach now.
  [[nodiscard]] Cuts found(std::span<const Peer> peers, std::size_t rank,
                           Clock::time_point deadline) const;

  ProbeListener listener_;
  // Result of the last trial.
  Cuts found_;
  Cuts cuts_;
};

}  // namespace rubato::hosts_detail
