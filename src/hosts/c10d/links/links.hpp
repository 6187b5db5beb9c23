#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "door.hpp"
#include "hosts/c10d/store/store.hpp"
#include "hosts/run_status/members.hpp"

namespace rubato::c10d_hosts_detail {

/// A host of a generation, as the others try whether they reach it.
struct Peer {
  HostNumber host = 0;
  /// For people.
  std::string name{};
  /// Door::address().
  std::string door{};
};

/// Whether the hosts of a generation reach each other, tried before they connect (docs/adr/0052).
class Links {
 public:
  /// Of a host that the others reach at this address or network interface. Throws Error.
  explicit Links(const std::string& interface) : door_(interface) {}

  [[nodiscard]] const std::string& door() const { return door_.address(); }

  /// All hosts of a generation call it, with the store of its connections; `rank` is this host's.
  /// Each tries every other one and tells what it has found, so that they return, or throw HostLost
  /// with the sentence that says why, at about the same time: within `patience`, half of which is
  /// for the trial.
  void try_all(Store& store, std::span<const Peer> peers, std::size_t rank, milliseconds patience);

  /// Throws HostLost where one of them is not reached now. A host whose process has ended is told
  /// of by its machine, at once.
  void require_open(std::span<const Peer> peers, std::size_t rank) const;

  /// What this host has not reached in the last two trials in a row: once may have been a moment.
  [[nodiscard]] const Cuts& cuts() const { return cuts_; }

 private:
  // By this host, now.
  [[nodiscard]] Cuts found(std::span<const Peer> peers, std::size_t rank,
                           Clock::time_point deadline) const;

  Door door_;
  // In the last trial.
  Cuts found_;
  Cuts cuts_;
};

}  // namespace rubato::c10d_hosts_detail
