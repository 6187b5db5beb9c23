#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "door.hpp"
#include "hosts/c10d/store/store.hpp"
#include "hosts/run_status/members.hpp"

namespace rubato::c10d_hosts_detail {

/// A host of a generation, as the others try to reach it.
struct Peer {
  HostNumber host = 0;
  /// Name of the host in messages.
  std::string name{};
  /// Door::address() of the host.
  std::string door{};
};

/// Tests whether the hosts of a generation reach each other before they connect (docs/adr/0052).
class Links {
 public:
  /// Opens a door at the address or network interface at which the others reach this host. Throws
  /// Error if it cannot listen.
  explicit Links(const std::string& interface) : door_(interface) {}

  [[nodiscard]] const std::string& door() const { return door_.address(); }

  /// Called by all hosts of a generation, with the store of its connections; `rank` is this host's.
  /// Each tries every other one and tells the result, so that all return, or throw HostLost with
  /// the sentence that says why, at about the same time: within `patience`, half of which is for
  /// the trial.
  void try_all(Store& store, std::span<const Peer> peers, std::size_t rank, milliseconds patience);

  /// Throws HostLost if one of them cannot be reached now. If only a host's process has ended, its
  /// machine says so at once.
  void require_open(std::span<const Peer> peers, std::size_t rank) const;

  /// Hosts that this one has not reached in the last two trials in a row: a single failure may have
  /// been momentary.
  [[nodiscard]] const Cuts& cuts() const { return cuts_; }

 private:
  // The hosts that this one does not reach now.
  [[nodiscard]] Cuts found(std::span<const Peer> peers, std::size_t rank,
                           Clock::time_point deadline) const;

  Door door_;
  // Result of the last trial.
  Cuts found_;
  Cuts cuts_;
};

}  // namespace rubato::c10d_hosts_detail
