#include "links.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rubato::c10d_hosts_detail {

namespace {

// Key in the store of a generation for what a host has found; its text is empty if the host reaches
// all others.
std::string key_of(std::size_t rank) {
  return fmt::format("links/{}", rank);
}

}  // namespace

Cuts Links::found(std::span<const Peer> peers, std::size_t rank, Clock::time_point deadline) const {
  std::vector<std::string> doors;
  for (const Peer& peer : peers) doors.push_back(peer.door);
  doors[rank].clear();
  Cuts cuts;
  for (const auto& [other, why] : closed_doors(doors, deadline)) {
    cuts.emplace(peers[other].host, fmt::format("{} cannot reach {} at {}: {}", peers[rank].name,
                                                peers[other].name, peers[other].door, why));
  }
  return cuts;
}

void Links::require_open(std::span<const Peer> peers, std::size_t rank) const {
  constexpr milliseconds kOpenWithin{1'000};
  const Cuts cuts = found(peers, rank, Clock::now() + kOpenWithin);
  if (!cuts.empty()) throw HostLost(cuts.begin()->second);
}

void Links::try_all(Store& store, std::span<const Peer> peers, std::size_t rank,
                    milliseconds patience) {
  const Clock::time_point start = Clock::now();
  const Cuts before = std::exchange(found_, found(peers, rank, start + patience / 2));
  cuts_ = found_;
  std::erase_if(cuts_, [&](const auto& cut) { return !before.contains(cut.first); });

  const std::string own = found_.empty() ? "" : found_.begin()->second;
  store.set(key_of(rank), own);
  if (!own.empty()) throw HostLost(own);
  for (std::size_t other = 0; other < peers.size(); ++other) {
    const auto told = store.wait(key_of(other), start + patience);
    if (!told) throw HostLost(fmt::format("{} does not come", peers[other].name));
    if (!told->empty()) throw HostLost(*told);
  }
}

}  // namespace rubato::c10d_hosts_detail
