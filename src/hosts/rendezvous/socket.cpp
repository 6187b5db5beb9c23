// The sockets made here are non-blocking and close-on-exec: a call that would block does nothing,
// and a failure is thrown as an Error with the system's words, except by accept_from(), which hands
// over its number. Apart from the resolution of names, only connect_to() and wait_until() wait, by
// poll() and up to a deadline of the steady clock. Without an address, listen_at() opens one IPv6
// socket that also takes IPv4, or an IPv4 socket if IPv6 is not available. Keep-alive probes end a
// connection whose other side has vanished after about two minutes.

#include "socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

namespace rubato::rendezvous_detail {

namespace {

std::string message_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void fail() {
  throw Error(message_of(errno));
}

sockaddr* as_any(sockaddr_storage& address) {
  return static_cast<sockaddr*>(static_cast<void*>(&address));
}

struct Release {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, Release>;

// Null if there are no addresses of that family; `why` keeps the first reason.
Addresses addresses_of(const std::string& host, int port, int family, std::string& why) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (host.empty() ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), fmt::to_string(port).c_str(),
                                &hints, &found);
  if (error != 0 && why.empty()) why = gai_strerror(error);
  return Addresses(error == 0 ? found : nullptr);
}

Socket socket_of(int family) {
  return Socket(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set_option(const Socket& socket, int level, int name, int value) {
  // Options that the system does not know are skipped.
  static_cast<void>(setsockopt(socket.descriptor(), level, name, &value, sizeof(value)));
}

// Messages are short, and a peer that loses its power has to be noticed.
void prepare(const Socket& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 6);
}

// The address, in numbers.
std::string text_of(const sockaddr& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      getnameinfo(&address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  if (error != 0) throw Error(gai_strerror(error));
  return text.data();
}

// Returns 0 or the error.
int listen_with(const Socket& socket, const addrinfo& address) {
  if (!socket) return errno;
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  const bool done = bind(socket.descriptor(), address.ai_addr, address.ai_addrlen) == 0 &&
                    listen(socket.descriptor(), SOMAXCONN) == 0;
  return done ? 0 : errno;
}

// A connection to a port of this machine where nobody listens may be given that very port for its
// own side, and be connected with itself.
bool is_connected_with_itself(const Socket& socket) {
  sockaddr_storage own{};
  sockaddr_storage other{};
  socklen_t own_size = sizeof(own);
  socklen_t other_size = sizeof(other);
  return getsockname(socket.descriptor(), as_any(own), &own_size) == 0 &&
         getpeername(socket.descriptor(), as_any(other), &other_size) == 0 &&
         own_size == other_size && std::memcmp(&own, &other, own_size) == 0;
}

// Returns 0 or the error.
int connect_with(const Socket& socket, const sockaddr* address, socklen_t size,
                 Clock::time_point deadline) {
  if (!socket) return errno;
  if (connect(socket.descriptor(), address, size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    if (!wait_until(Until::writable, socket, deadline)) return ETIMEDOUT;
    int error = 0;
    socklen_t error_size = sizeof(error);
    if (getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) {
      return errno;
    }
    if (error != 0) return error;
  }
  return is_connected_with_itself(socket) ? ECONNREFUSED : 0;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}
Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

std::size_t Socket::send(std::string_view bytes) const {
  const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail();
}

void Socket::receive(std::string& to, std::size_t most) const {
  std::array<char, kMostReceived> bytes;  // NOLINT(*-member-init): recv() fills it
  const ssize_t received = recv(descriptor_, bytes.data(), std::min(most, bytes.size()), 0);
  if (received > 0) {
    to.append(bytes.data(), static_cast<std::size_t>(received));
  } else if (received == 0) {
    throw Error("the connection is closed");
  } else if (errno != EAGAIN && errno != EINTR) {
    fail();
  }
}

Socket listen_at(const std::string& address, int port) {
  // A listener at all IPv6 addresses covers those of IPv4, too; for a name of this machine the IPv4
  // address is better known.
  std::array<int, 2> families{AF_INET6, AF_INET};
  if (!address.empty()) std::ranges::reverse(families);
  std::string why;
  for (const int family : families) {
    const Addresses found = addresses_of(address, port, family, why);
    if (!found) continue;
    Socket socket = socket_of(found->ai_family);
    const int error = listen_with(socket, *found);
    if (error == 0) return socket;
    why = message_of(error);
    if (error == EADDRINUSE) break;
  }
  throw Error(why);
}

sockaddr_storage own_address(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.descriptor(), as_any(address), &size) != 0) fail();
  return address;
}

int port_of(const Socket& socket) {
  sockaddr_storage address = own_address(socket);
  // The port stands at the same place in both address types.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(static_cast<sockaddr_in*>(static_cast<void*>(&address))->sin_port);
}

std::string address_of(const Socket& socket) {
  sockaddr_storage address = own_address(socket);
  return text_of(*as_any(address), sizeof(address));
}

std::vector<std::string> addresses_of_interface(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) fail();
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> release(all, freeifaddrs);
  std::vector<std::string> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_name != name || entry->ifa_addr == nullptr) continue;
      if (entry->ifa_addr->sa_family != family) continue;
      found.push_back(text_of(*entry->ifa_addr,
                              family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
    }
  }
  return found;
}

Socket accept_from(const Socket& listener, int& error) {
  error = 0;
  Socket socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    prepare(socket);
  } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    error = errno;
  }
  return socket;
}

Socket connect_to(const std::string& host, int port, Clock::time_point deadline) {
  std::string why;
  const Addresses found = addresses_of(host, port, AF_UNSPEC, why);
  for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
    Socket socket = socket_of(address->ai_family);
    const int error = connect_with(socket, address->ai_addr, address->ai_addrlen, deadline);
    if (error == 0) {
      prepare(socket);
      return socket;
    }
    why = message_of(error);
  }
  throw Error(why);
}

Socket connect_to(const sockaddr_storage& address, Clock::time_point deadline) {
  sockaddr_storage to = address;
  Socket socket = socket_of(to.ss_family);
  const socklen_t size = to.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (const int error = connect_with(socket, as_any(to), size, deadline); error != 0) {
    throw Error(message_of(error));
  }
  prepare(socket);
  return socket;
}

bool wait_until(Until until, const Socket& socket, Clock::time_point deadline) {
  pollfd polled{.fd = socket.descriptor(),
                .events = static_cast<short>(until == Until::readable ? POLLIN : POLLOUT),
                .revents = 0};
  for (;;) {
    const int ready = poll(&polled, 1, poll_timeout(deadline));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) fail();
  }
}

int poll_timeout(std::optional<Clock::time_point> deadline) {
  if (!deadline) return -1;
  constexpr std::int64_t kLongest = 60'000;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongest));
}

}  // namespace rubato::rendezvous_detail
