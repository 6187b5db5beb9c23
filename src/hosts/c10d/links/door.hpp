#pragma once

#include <map>
#include <span>
#include <string>

#include "hosts/c10d/store/store.hpp"
#include "hosts/rendezvous/wire/socket.hpp"

namespace rubato::c10d_hosts_detail {

/// Where other hosts try whether they reach this one: it listens for as long as the host lives. The
/// system lets them in by itself, whatever the host is doing; nothing is said there.
class Door {
 public:
  /// Listens at an address, or at that of a network interface, at a port of its own. Throws Error.
  explicit Door(const std::string& interface);

  /// "HOST:PORT", in numbers.
  [[nodiscard]] const std::string& address() const { return address_; }
  /// Lets go of those who have come: the system lets in a few thousand until then.
  void clear() const;

 private:
  rendezvous_detail::Socket listener_;
  std::string address_;
};

/// Tries these doors all at once, except those that are empty. By its place in the list, why one
/// cannot be reached by `deadline`.
[[nodiscard]] std::map<std::size_t, std::string> closed_doors(std::span<const std::string> doors,
                                                              Clock::time_point deadline);

}  // namespace rubato::c10d_hosts_detail
