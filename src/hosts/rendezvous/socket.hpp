#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

namespace rubato::rendezvous_detail {

using Clock = std::chrono::steady_clock;

inline constexpr int kMaxPort = 65'535;

/// An open TCP socket, or none. No call waits.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] explicit operator bool() const { return descriptor_ >= 0; }

  /// Returns how many bytes the system has taken. Throws Error when the other side has gone.
  [[nodiscard]] std::size_t send(std::string_view bytes) const;
  /// Appends the available bytes to `to`, at most `most` and 64 KiB; appends nothing if there are
  /// none. Throws Error when the other side has gone.
  void receive(std::string& to, std::size_t most = kMostReceived) const;
  /// Gives the descriptor up; the caller has to close it.
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }

 private:
  static constexpr std::size_t kMostReceived = std::size_t{1} << 16U;

  int descriptor_ = -1;
};

/// Listens at an address of this machine, or at all of them if it is empty. Throws Error with the
/// reason.
[[nodiscard]] Socket listen_at(const std::string& address, int port);
/// Port at which the socket listens.
[[nodiscard]] int port_of(const Socket& socket);
/// Address and port of the socket, as the system represents them.
[[nodiscard]] sockaddr_storage own_address(const Socket& socket);
/// Address of the socket, in numbers.
[[nodiscard]] std::string address_of(const Socket& socket);
/// Addresses of a network interface, in numbers, IPv4 first; empty if there is no such interface.
[[nodiscard]] std::vector<std::string> addresses_of_interface(const std::string& name);

/// Accepts the next connection, if one waits; `error` is set if the system refuses it.
[[nodiscard]] Socket accept_from(const Socket& listener, int& error);

/// Connects. Throws Error with the reason, also if the connection is not there by `deadline`.
[[nodiscard]] Socket connect_to(const std::string& host, int port, Clock::time_point deadline);
[[nodiscard]] Socket connect_to(const sockaddr_storage& address, Clock::time_point deadline);

/// Waits until bytes can be read from the socket, or written to it. Returns false if that is not
/// possible by `deadline`.
enum class Until { readable, writable };
[[nodiscard]] bool wait_until(Until until, const Socket& socket, Clock::time_point deadline);

/// Timeout for poll(): milliseconds until `deadline`, rounded up; -1, for ever, if there is none.
[[nodiscard]] int poll_timeout(std::optional<Clock::time_point> deadline);

/// Ends poll() from another thread, once.
class WakeUp {
 public:
  WakeUp() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ >= 0) return;
    throw_error("cannot serve a rendezvous: {}", std::generic_category().message(errno));
  }
  ~WakeUp() { close(descriptor_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Makes the descriptor readable from now on.
  void send() const {
    const std::uint64_t one = 1;
    RUBATO_CHECK(write(descriptor_, &one, sizeof(one)) == sizeof(one),
                 "an eventfd has room for the first number");
  }

 private:
  int descriptor_;
};

}  // namespace rubato::rendezvous_detail
