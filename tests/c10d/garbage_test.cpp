// What others than hosts send to the port of the rendezvous: hosts meet, and meet again, all the
// while (tests/rendezvous has the store alone).

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/hosts/c10d_hosts.hpp>

#include "c10d/support.hpp"
#include "support/error_of.hpp"
#include "support/stranger.hpp"

namespace rubato {
namespace {

using std::chrono::seconds;
using test::Stranger;
using testing::HasSubstr;

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

TEST(Rendezvous, ServesHostsWhateverStrangersSend) {
  const RendezvousServer server(0);
  const Strangers strangers(server.port());
  EXPECT_THAT(test::errors_of_meeting(two_hosts(server, "run")), testing::Each("no error"));
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
  std::thread other([&] { EXPECT_EQ(hosts[1]->regroup({}), ElasticHosts::Meeting::formed); });
  EXPECT_EQ(hosts[0]->regroup({}), ElasticHosts::Meeting::formed);
  other.join();
  const Strangers strangers(server.port());
  hosts.pop_back();
  EXPECT_THROW(static_cast<void>(test::exchanged(*hosts[0], 1, std::byte{1})), HostLost);
  EXPECT_EQ(hosts[0]->regroup({.steps = 1}), ElasticHosts::Meeting::formed);
  EXPECT_EQ(hosts[0]->count(), 1);
}

// Of host 0: whoever comes without the token is refused, and the others meet.
TEST(Rendezvous, OfATokenIsReachedByNobodyElse) {
  const test::FreePort port;
  const auto host = [&port](int rank, const std::string& token) {
    return C10dOptions{
        .count = 2, .rank = rank, .port = port.number(), .token = token, .timeout = seconds(60)};
  };
  std::thread first([&] {
    EXPECT_EQ(test::error_of([&] { static_cast<void>(c10d_hosts(host(0, "open sesame"))); }),
              "no error");
  });
  for (const std::string token : {"", "open barley"}) {
    EXPECT_EQ(test::error_of([&] { static_cast<void>(c10d_hosts(host(1, token))); }),
              fmt::format("cannot reach the rendezvous 127.0.0.1:{}: it is served with another "
                          "token; accepted: the same on all hosts",
                          port.number()));
  }
  const Strangers strangers(port.number());
  EXPECT_EQ(test::error_of([&] { static_cast<void>(c10d_hosts(host(1, "open sesame"))); }),
            "no error");
  first.join();
}

TEST(Rendezvous, TellsOfThoseThatItHasRefused) {
  const test::FreePort port;
  const auto host = [&port](int rank, const std::string& token) {
    return C10dOptions{
        .count = 2, .rank = rank, .port = port.number(), .token = token, .timeout = seconds(2)};
  };
  std::thread other([&] {
    EXPECT_THAT(test::error_of([&] { static_cast<void>(c10d_hosts(host(1, "open barley"))); }),
                HasSubstr("another token"));
  });
  EXPECT_EQ(test::error_of([&] { static_cast<void>(c10d_hosts(host(0, "open sesame"))); }),
            fmt::format("host 1 of 2 has not come to the rendezvous 127.0.0.1:{} within 2 s; 1 "
                        "came with another token",
                        port.number()));
  other.join();
}

}  // namespace
}  // namespace rubato
