#include "links.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <net/if.h>
#include <poll.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "store.hpp"

namespace rubato::hosts_detail {

namespace {

using rendezvous_detail::Socket;

// Throws Error with the reason if nobody listens at the address.
void probe(const std::string& address, Clock::time_point deadline) {
  const std::size_t border = address.rfind(':');
  const std::int64_t port = parse_whole(address.substr(border + 1), 1, rendezvous_detail::kMaxPort);
  static_cast<void>(
      rendezvous_detail::connect_to(address.substr(0, border), static_cast<int>(port), deadline));
}

}  // namespace

Socket listener_at(const std::string& interface) {
  constexpr int kAnyPort = 0;
  try {
    if (interface.empty()) throw Error("it is empty");
    if (if_nametoindex(interface.c_str()) == 0) {
      return rendezvous_detail::listen_at(interface, kAnyPort);
    }
    const auto addresses = rendezvous_detail::addresses_of_interface(interface);
    if (addresses.empty()) throw Error("it has no address");
    return rendezvous_detail::listen_at(addresses.front(), kAnyPort);
  } catch (const Error& error) {
    throw_error(
        "cannot listen at '{}': {}; accepted: an address of this machine, or the name of one of "
        "its network interfaces",
        interface, error.what());
  }
}

ProbeListener::ProbeListener(const std::string& interface)
    : listener_(listener_at(interface)),
      address_(fmt::format("{}:{}", rendezvous_detail::address_of(listener_),
                           rendezvous_detail::port_of(listener_))),
      thread_([this] { accept_and_close(); }) {}

ProbeListener::~ProbeListener() {
  wake_up_.send();
  thread_.join();
}

void ProbeListener::accept_and_close() const {
  // Accepting is tried again after this many milliseconds if the system has no room for a
  // connection.
  constexpr int kPause = 100;
  for (bool is_full = false;;) {
    std::array<pollfd, 2> polled{
        {{.fd = wake_up_.descriptor(), .events = POLLIN, .revents = 0},
         {.fd = is_full ? -1 : listener_.descriptor(), .events = POLLIN, .revents = 0}}};
    static_cast<void>(poll(polled.data(), polled.size(), is_full ? kPause : -1));
    if (polled[0].revents != 0) return;
    int error = 0;
    static_cast<void>(rendezvous_detail::accept_from(listener_, error));
    is_full = error != 0;
  }
}

std::map<std::size_t, std::string> unreachable(std::span<const std::string> addresses,
                                               Clock::time_point deadline) {
  std::vector<std::string> reasons(addresses.size());
  std::vector<std::jthread> trials;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (addresses[i].empty()) continue;
    trials.emplace_back([&, i] {
      try {
        probe(addresses[i], deadline);
      } catch (const std::exception& error) {
        reasons[i] = error.what();
      }
    });
  }
  trials.clear();
  std::map<std::size_t, std::string> closed;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (!reasons[i].empty()) closed.emplace(i, reasons[i]);
  }
  return closed;
}

namespace {

// Key in the store of a generation for what a host has found; its text is empty if the host reaches
// all others.
std::string key_of(std::size_t rank) {
  return fmt::format("links/{}", rank);
}

}  // namespace

Cuts Links::found(std::span<const Peer> peers, std::size_t rank, Clock::time_point deadline) const {
  std::vector<std::string> addresses = vector_of(peers, &Peer::probe_address);
  addresses[rank].clear();
  Cuts cuts;
  for (const auto& [other, why] : unreachable(addresses, deadline)) {
    cuts.emplace(peers[other].host,
                 fmt::format("{} cannot reach {} at {}: {}", peers[rank].name, peers[other].name,
                             peers[other].probe_address, why));
  }
  return cuts;
}

void Links::require_reachable(std::span<const Peer> peers, std::size_t rank) const {
  constexpr milliseconds kOpenWithin{1'000};
  const Cuts cuts = found(peers, rank, Clock::now() + kOpenWithin);
  if (!cuts.empty()) throw HostLost(cuts.begin()->second);
}

void Links::probe_all(Store& store, std::span<const Peer> peers, std::size_t rank,
                      milliseconds patience) {
  const Clock::time_point start = Clock::now();
  const Cuts before = std::exchange(found_, found(peers, rank, start + patience / 2));
  cuts_ = found_;
  std::erase_if(cuts_, [&](const auto& cut) { return !before.contains(cut.first); });

  const std::string own = found_.empty() ? "" : found_.begin()->second;
  store.set(key_of(rank), own);
  if (!own.empty()) throw HostLost(own);
  for (std::size_t other = 0; other < peers.size(); ++other) {
    const auto reason = store.wait(key_of(other), start + patience);
    if (!reason) throw HostLost(fmt::format("{} does not come", peers[other].name));
    if (!reason->empty()) throw HostLost(*reason);
  }
}

}  // namespace rubato::hosts_detail
