#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rubato::test {

/// A port that nobody listens at. Another process may take it before the test does.
[[nodiscard]] inline int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = static_cast<sockaddr*>(static_cast<void*>(&address));
  EXPECT_EQ(bind(listener, any, size), 0);
  EXPECT_EQ(getsockname(listener, any, &size), 0);
  close(listener);
  return ntohs(address.sin_port);
}

}  // namespace rubato::test
