#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rubato::test {

/// Somebody who connects to a port of this machine, and sends what they like.
class Stranger {
 public:
  explicit Stranger(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_TRUE(reaches(address));
  }
  /// Connects where somebody still listens, says something, and is gone at once.
  static void scan(const sockaddr_in& address, std::string_view text = {}) {
    Stranger stranger;
    if (!stranger.reaches(address)) return;
    stranger.say(text);
    stranger.reset();
  }
  ~Stranger() {
    if (socket_ >= 0) close(socket_);
  }
  Stranger(Stranger&& other) noexcept : socket_(other.socket_) { other.socket_ = -1; }
  Stranger& operator=(Stranger&&) = delete;
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  /// Whoever listens may have closed the connection: that is no failure.
  void say(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  /// Closes the connection as those do who have no more use for it: with a reset.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(socket_);
    socket_ = -1;
  }
  /// So many bytes, or fewer where the connection is closed before.
  [[nodiscard]] std::string hear(std::size_t bytes) const {
    std::string heard;
    std::array<char, 4096> some{};
    while (heard.size() < bytes) {
      const ssize_t got =
          recv(socket_, some.data(), std::min(some.size(), bytes - heard.size()), 0);
      if (got <= 0) break;
      heard.append(some.data(), static_cast<std::size_t>(got));
    }
    return heard;
  }
  /// True if the other side has neither said anything nor closed the connection.
  [[nodiscard]] bool is_connected() const {
    char byte = 0;
    return recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  /// Waits until the other side closes the connection.
  void wait_for_end() const {
    std::array<char, 4096> some{};
    while (recv(socket_, some.data(), some.size(), 0) > 0) {
    }
  }

 private:
  Stranger() = default;
  [[nodiscard]] bool reaches(sockaddr_in address) const {
    return connect(socket_, static_cast<sockaddr*>(static_cast<void*>(&address)),
                   sizeof(address)) == 0;
  }

  int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

}  // namespace rubato::test
