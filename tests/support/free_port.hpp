#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rubato::test {

/// A port that nobody listens at. It stays bound, so that the system gives it to nobody who asks
/// for any port; who asks for this one can listen at it, where that is done with SO_REUSEADDR, as
/// c10d does.
class FreePort {
 public:
  FreePort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    EXPECT_EQ(setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof(address);
    auto* const any = static_cast<sockaddr*>(static_cast<void*>(&address));
    EXPECT_EQ(bind(socket_, any, size), 0);
    EXPECT_EQ(getsockname(socket_, any, &size), 0);
    number_ = ntohs(address.sin_port);
  }
  ~FreePort() { close(socket_); }
  FreePort(const FreePort&) = delete;
  FreePort& operator=(const FreePort&) = delete;

  [[nodiscard]] int number() const { return number_; }

 private:
  int socket_;
  int number_ = 0;
};

}  // namespace rubato::test
