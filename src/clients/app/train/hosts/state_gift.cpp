#include "state_gift.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato::app {

namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 36U;
constexpr std::uint64_t kPiece = std::uint64_t{1} << 26U;

// Sends `bytes` of host `from` to the hosts in `to`, where it fills `bytes`.
void give(Hosts& hosts, std::size_t from, const std::vector<bool>& to, std::span<std::byte> bytes) {
  const auto own = static_cast<std::size_t>(hosts.rank());
  std::vector<std::span<const std::byte>> out(to.size());
  std::vector<std::span<std::byte>> in(to.size());
  for (std::size_t host = 0; host < to.size(); ++host) {
    if (own == from && to[host]) out[host] = bytes;
  }
  if (own != from && to[own]) in[from] = bytes;
  hosts.exchange(out, in);
}

}  // namespace

bool Giving::any() const {
  return std::ranges::find(to, true) != to.end();
}

Giving giving_of(const ElasticHosts& hosts) {
  const std::span<const HostStanding> standings = hosts.standings();
  const auto steps_of = [](const HostStanding& host) { return host.steps.value_or(-1); };
  const auto furthest = std::ranges::max_element(standings, {}, steps_of);
  Giving giving{.from = static_cast<std::size_t>(furthest - standings.begin())};
  for (std::size_t host = 0; host < standings.size(); ++host) {
    const bool lacks = !standings[host].steps || *standings[host].steps + 1 < steps_of(*furthest);
    giving.to.push_back(lacks && host != giving.from);
  }
  return giving;
}

std::string given(Hosts& hosts, const Giving& giving, std::string bytes) {
  const auto own = static_cast<std::size_t>(hosts.rank());
  const bool has_part = own == giving.from || giving.to[own];
  std::uint64_t size = bytes.size();
  give(hosts, giving.from, std::vector(giving.to.size(), true),
       std::as_writable_bytes(std::span(&size, 1)));
  if (size > kMost) {
    throw Error(
        fmt::format("another host sends a state of {} bytes; accepted: up to {}", size, kMost));
  }
  if (giving.to[own]) bytes.resize(size);
  for (std::uint64_t begin = 0; begin < size; begin += kPiece) {
    const std::uint64_t count = std::min(kPiece, size - begin);
    give(hosts, giving.from, giving.to,
         has_part ? std::as_writable_bytes(std::span(bytes)).subspan(begin, count)
                  : std::span<std::byte>());
  }
  return bytes;
}

}  // namespace rubato::app
