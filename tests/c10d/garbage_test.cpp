// What others than hosts send to the port of the rendezvous, and what c10d makes of it.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "c10d/support.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

using std::chrono::seconds;

// Somebody who has come to the wrong port.
class Stranger {
 public:
  explicit Stranger(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        connect(socket_, static_cast<sockaddr*>(static_cast<void*>(&address)), sizeof(address)), 0);
  }
  ~Stranger() { close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void say(std::string_view text) const {
    EXPECT_EQ(send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    // Until the server has read it.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }

 private:
  int socket_;
};

std::vector<C10dOptions> two_hosts(const RendezvousServer& server, const std::string& run) {
  return {test::options_at(server, run, 0, 2), test::options_at(server, run, 1, 2)};
}

TEST(Rendezvous, SurvivesNonsense) {
  const RendezvousServer server(0);
  int run = 0;
  for (const std::string& nonsense :
       {std::string("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), std::string(64, '\xff'),
        // A key of 2^63 bytes.
        std::string("\0\0\0\0\0\0\0\0\x80", 9), std::string("\x16\x03\x01\x02", 4)}) {
    const Stranger stranger(server.port());
    stranger.say(nonsense);
    EXPECT_THAT(test::errors_of_meeting(two_hosts(server, fmt::format("run {}", run++))),
                testing::Each("no error"))
        << testing::PrintToString(nonsense);
  }
}

// Its thread reads one message after the other, each to its end.
TEST(Rendezvous, WaitsForAnUnfinishedMessage) {
  const RendezvousServer server(0);
  {
    const Stranger stranger(server.port());
    // It sets a key of 8 bytes, of which 3 come.
    stranger.say(std::string("\0\x08\0\0\0\0\0\0\0abc", 12));
    auto hosts = two_hosts(server, "stuck");
    for (C10dOptions& host : hosts) host.timeout = seconds(2);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(test::errors_of_meeting(hosts),
                testing::Each(testing::HasSubstr("does not answer")));
    EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(30));
  }
  // And goes on when the stranger has gone.
  EXPECT_THAT(test::errors_of_meeting(two_hosts(server, "free")), testing::Each("no error"));
}

TEST(Rendezvous, EndsThoughItIsStuck) {
  const auto start = std::chrono::steady_clock::now();
  auto server = std::make_unique<RendezvousServer>(0);
  const Stranger stranger(server->port());
  stranger.say(std::string("\0\x08\0\0\0\0\0\0\0abc", 12));
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(30));
}

// Once they are connected they need it no more.
TEST(Rendezvous, MayBeStuckWhileHostsExchange) {
  const RendezvousServer server(0);
  const auto errors =
      test::errors_of_hosts(two_hosts(server, "on"), [&](const C10dOptions& options) {
        const auto host = c10d_hosts(options);
        static_cast<void>(test::exchanged(*host, 10, std::byte{1}));
        const Stranger stranger(server.port());
        stranger.say(std::string("\0\x08\0\0\0\0\0\0\0abc", 12));
        for (int i = 0; i < 100; ++i) static_cast<void>(test::exchanged(*host, 10, std::byte{1}));
      });
  EXPECT_THAT(errors, testing::Each("no error"));
}

}  // namespace
}  // namespace rubato
