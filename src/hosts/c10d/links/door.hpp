#pragma once

#include <map>
#include <span>
#include <string>
#include <thread>

#include "hosts/c10d/store/store.hpp"
#include "hosts/rendezvous/wire/socket.hpp"
#include "hosts/rendezvous/wire/wake_up.hpp"

namespace rubato::c10d_hosts_detail {

/// Listens at an address, or at the first one of a network interface, at any free port. Throws
/// Error if it cannot.
[[nodiscard]] rendezvous_detail::Socket listener_at(const std::string& interface);

/// A listener at which other hosts test whether they reach this one. It listens for as long as the
/// host lives, and a thread closes each connection at once; no data is exchanged.
class Door {
 public:
  /// Listens as listener_at() does.
  explicit Door(const std::string& interface);
  /// Waits for the thread.
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// "HOST:PORT", in numbers.
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  void let_in_and_out() const;

  rendezvous_detail::WakeUp wake_up_;
  rendezvous_detail::Socket listener_;
  std::string address_;
  // The thread is the last member because it uses all of the above.
  std::thread thread_;
};

/// Tries these doors all at once, except those that are empty. Returns why a door cannot be reached
/// by `deadline`, by its index in the list.
[[nodiscard]] std::map<std::size_t, std::string> closed_doors(std::span<const std::string> doors,
                                                              Clock::time_point deadline);

}  // namespace rubato::c10d_hosts_detail
