// What others than hosts send to the port of the rendezvous: hosts meet, and meet again, all the
// while (tests/rendezvous has the store alone).

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <rubato/hosts/c10d_hosts.hpp>

#include "c10d/support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/stranger.hpp"

namespace rubato {
namespace {

using std::chrono::seconds;
using test::Stranger;

// Connections that stay open, each with a message that is begun and not ended.
class Strangers {
 public:
  explicit Strangers(int port) {
    for (const std::string& said :
         {std::string(),
          // 4 GiB are claimed.
          std::string("\xff\xff\xff\xff"), std::string("\0\0\1", 3),
          // To a TCPStore: it sets a key of 8 bytes, of which 3 come; and a key of 2^63 bytes.
          std::string("\0\x08\0\0\0\0\0\0\0abc", 12), std::string("\0\0\0\0\0\0\0\0\x80", 9),
          std::string("GET / HTTP/1.1\r\n"), std::string("\x16\x03\x01\x02", 4)}) {
      strangers_.emplace_back(port);
      strangers_.back().say(said);
    }
  }

 private:
  std::vector<Stranger> strangers_;
};

std::vector<C10dOptions> two_hosts(const RendezvousServer& server, const std::string& run) {
  return {test::options_at(server, run, 0, 2), test::options_at(server, run, 1, 2)};
}

TEST(Rendezvous, EndsWhateverStrangersSend) {
  auto server = std::make_unique<RendezvousServer>(0);
  const Strangers strangers(server->port());
  server.reset();
}

// With a loss in the middle of it.
TEST(Rendezvous, ServesHostsThatComeAndGoWhateverStrangersSend) {
  const RendezvousServer server(0);
  const ElasticOptions options{.meeting = test::options_at(server, "run", 0, 2)};
  std::vector<std::shared_ptr<ElasticHosts>> hosts{elastic_hosts(options), elastic_hosts(options)};
  std::thread other([&] { EXPECT_EQ(hosts[1]->regroup({}), ElasticHosts::Regrouping::formed); });
  EXPECT_EQ(hosts[0]->regroup({}), ElasticHosts::Regrouping::formed);
  other.join();
  const Strangers strangers(server.port());
  hosts.pop_back();
  EXPECT_THROW(static_cast<void>(test::exchanged(*hosts[0], 1, std::byte{1})), HostLost);
  EXPECT_EQ(hosts[0]->regroup({.steps = 1}), ElasticHosts::Regrouping::formed);
  EXPECT_EQ(hosts[0]->count(), 1);
}

// Host 0 serves the rendezvous.
class RendezvousOfAToken : public testing::Test {
 protected:
  [[nodiscard]] std::string error_of_host(int rank, const std::string& token,
                                          seconds timeout = seconds(60)) const {
    return error_of([&] {
      return c10d_hosts(
          {.count = 2, .rank = rank, .port = port_.number(), .token = token, .timeout = timeout});
    });
  }
  const test::FreePort port_;
};

// Whoever comes without the token is refused, and the others meet.
TEST_F(RendezvousOfAToken, IsReachedByNobodyElse) {
  const std::jthread first([&] { EXPECT_EQ(error_of_host(0, "open sesame"), "no error"); });
  for (const std::string token : {"", "open barley"}) {
    EXPECT_EQ(error_of_host(1, token),
              fmt::format("cannot reach the rendezvous 127.0.0.1:{}: it is served with another "
                          "token; accepted: the same on all hosts",
                          port_.number()));
  }
  const Strangers strangers(port_.number());
  EXPECT_EQ(error_of_host(1, "open sesame"), "no error");
}

TEST_F(RendezvousOfAToken, TellsOfThoseThatItHasRefused) {
  const std::jthread other([&] {
    EXPECT_THAT(error_of_host(1, "open barley", seconds(5)), HasSubstr("another token"));
  });
  // Long enough for the other one to come, however busy the machine is.
  EXPECT_EQ(error_of_host(0, "open sesame", seconds(5)),
            fmt::format("host 1 of 2 has not come to the rendezvous 127.0.0.1:{} within 5 s; 1 "
                        "came with another token",
                        port_.number()));
}

// By descriptor, the sockets of this process that listen, or are connected.
std::map<int, sockaddr_in> sockets_that(bool listen) {
  std::map<int, sockaddr_in> sockets;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int descriptor = std::stoi(entry.path().filename());
    int is_listener = 0;
    socklen_t size = sizeof(is_listener);
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_listener, &size) != 0) continue;
    sockaddr_in address{};
    size = sizeof(address);
    auto* const any = static_cast<sockaddr*>(static_cast<void*>(&address));
    const bool is_known = listen ? getsockname(descriptor, any, &size) == 0
                                 : getpeername(descriptor, any, &size) == 0;
    if (is_known && address.sin_family == AF_INET && (is_listener != 0) == listen) {
      sockets.emplace(descriptor, address);
    }
  }
  return sockets;
}

// Port scanners and health checks connect to every port that they find, and reset the connection.
// They do not find gloo's own listeners, which have random addresses of the loopback: with the gloo
// of Debian 13, the process aborts if a connection to one of them outlives its device.
TEST(PortsOfHosts, AreOpenToStrangers) {
  const RendezvousServer server(0);
  std::atomic<bool> ends = false;
  std::atomic<int> scanned = 0;
  std::jthread scanner([&] {
    while (!ends) {
      for (const auto& [descriptor, address] : sockets_that(true)) {
        const bool is_found = ntohl(address.sin_addr.s_addr) == INADDR_LOOPBACK;
        if (!is_found || ntohs(address.sin_port) == server.port()) continue;
        Stranger::scan(address);
        ++scanned;
      }
    }
  });
  for (int run = 0; run < 20; ++run) {
    EXPECT_THAT(test::errors_of_meeting(two_hosts(server, fmt::format("run {}", run))),
                Each("no error"));
  }
  ends = true;
  EXPECT_GT(scanned, 0);
}

// What reaches gloo over a connection that is somehow broken: the other host is lost, and this one
// lives.
TEST(ConnectionsOfHosts, EndWithNonsense) {
  // As the program has it: gloo writes to connections that may be closed.
  ASSERT_NE(std::signal(SIGPIPE, SIG_IGN), SIG_ERR);
  const RendezvousServer server(0);
  const auto before = sockets_that(false);
  const auto errors =
      test::errors_of_hosts(two_hosts(server, "run"), [&](const C10dOptions& options) {
        const auto host = c10d_hosts(options);
        static_cast<void>(test::exchanged(*host, 10, std::byte{1}));
        // Of an operation of gloo's: its bytes, that it sends, the slot, offset, length, and
        // offset.
        const std::array<std::size_t, 6> nonsense{48, 1, 12345, 0, 1U << 20U, 0};
        for (const auto& [descriptor, address] : sockets_that(false)) {
          if (options.rank != 0 || before.contains(descriptor)) continue;
          static_cast<void>(send(descriptor, nonsense.data(), sizeof(nonsense), MSG_NOSIGNAL));
        }
        static_cast<void>(test::exchanged(*host, 10, std::byte{1}));
      });
  EXPECT_THAT(errors, ElementsAre(StartsWith("host 1 is lost: "), StartsWith("host 0 is lost: ")));
}

}  // namespace
}  // namespace rubato
