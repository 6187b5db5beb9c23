// Whether hosts reach each other, before they connect.

#include "hosts/c10d/links.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "c10d/support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/stranger.hpp"

namespace rubato::hosts_detail {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::Pair;

// Nobody listens there while the port is held.
std::string closed_at(const test::FreePort& port) {
  return fmt::format("127.0.0.1:{}", port.number());
}

TEST(ProbeListener, IsReachedWhereverItsHostIs) {
  const ProbeListener address("127.0.0.1");
  const ProbeListener interface("lo");
  EXPECT_THAT(address.address(), MatchesRegex("127\\.0\\.0\\.1:[0-9]+"));
  EXPECT_THAT(interface.address(), MatchesRegex("127\\.0\\.0\\.1:[0-9]+"));
  // Whoever has come is let go, and the next one let in.
  for (int trial = 0; trial < 3; ++trial) {
    const std::vector<std::string> addresses{address.address(), interface.address()};
    EXPECT_THAT(unreachable(addresses, Clock::now() + minutes(1)), IsEmpty());
  }
  EXPECT_THAT(error_of([] { const ProbeListener listener("no-such-interface"); }),
              AllOf(StartsWith("cannot listen at 'no-such-interface': "),
                    HasSubstr("accepted: an address of this machine")));
}

TEST(ProbeListener, IsUnreachableForAReason) {
  const ProbeListener open("127.0.0.1");
  const test::FreePort port;
  const std::vector<std::string> addresses{closed_at(port), "",   open.address(),
                                           "127.0.0.1",     ":x", "127.0.0.1:0"};
  const auto closed = unreachable(addresses, Clock::now() + minutes(1));
  EXPECT_THAT(closed,
              ElementsAre(Pair(0, "Connection refused"), Pair(3, HasSubstr("accepted: ")),
                          Pair(4, HasSubstr("accepted: ")), Pair(5, HasSubstr("accepted: "))));
}

// Whoever stays would take the place of others.
TEST(ProbeListener, ClosesConnectionsAtOnce) {
  const ProbeListener listener("127.0.0.1");
  const std::string& address = listener.address();
  const test::Stranger stranger(std::stoi(address.substr(address.rfind(':') + 1)));
  stranger.wait_for_end();
}

class LinksOfHosts : public testing::Test {
 protected:
  // What each of them throws when all try each other.
  std::vector<std::string> errors_of_trial() {
    std::vector<std::string> errors(links_.size());
    std::vector<std::jthread> threads;
    const std::string within = fmt::format("trial {}", ++trials_);
    for (std::size_t rank = 0; rank < links_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        errors[rank] = error_of([&] {
          Store store({.port = server_.port()}, within, minutes(1));
          links_[rank]->probe_all(store, peers_, rank, minutes(1));
        });
      });
    }
    threads.clear();
    return errors;
  }
  // Of a host with that number.
  void come(HostNumber host) {
    links_.push_back(std::make_unique<Links>("127.0.0.1"));
    peers_.push_back({.host = host,
                      .name = fmt::format("host {}", host),
                      .probe_address = links_.back()->probe_address()});
  }

  RendezvousServer server_{0};
  std::vector<std::unique_ptr<Links>> links_;
  std::vector<Peer> peers_;
  int trials_ = 0;
};

TEST_F(LinksOfHosts, AreThere) {
  for (const HostNumber host : {2, 4, 7}) come(host);
  for (int trial = 0; trial < 2; ++trial) {
    EXPECT_THAT(errors_of_trial(), Each("no error"));
    for (const auto& links : links_) EXPECT_THAT(links->cuts(), IsEmpty());
  }
}

// All of them hear of it, at once. A link counts as cut after the second trial in a row.
TEST_F(LinksOfHosts, AreLacking) {
  for (const HostNumber host : {2, 4, 7}) come(host);
  const test::FreePort port;
  const std::string there = std::exchange(peers_[2].probe_address, closed_at(port));
  const std::string why =
      fmt::format("cannot reach host 7 at {}: Connection refused", closed_at(port));
  for (const bool is_again : {false, true}) {
    EXPECT_THAT(errors_of_trial(), Each(MatchesRegex("host [24] " + why)));
    for (const std::size_t host : {0U, 1U}) {
      const std::string said = peers_[host].name + " " + why;
      const Cuts cuts = is_again ? Cuts{{7, said}} : Cuts{};
      EXPECT_EQ(links_[host]->cuts(), cuts);
    }
    EXPECT_THAT(links_[2]->cuts(), IsEmpty());
  }
  peers_[2].probe_address = there;
  EXPECT_THAT(errors_of_trial(), Each("no error"));
  EXPECT_THAT(links_[0]->cuts(), IsEmpty());
}

TEST_F(LinksOfHosts, AreOfThoseThatCome) {
  come(1);
  const ProbeListener listener("127.0.0.1");
  peers_.push_back({.host = 2, .name = "host 2", .probe_address = listener.address()});
  Store store({.port = server_.port()}, "x", minutes(1));
  EXPECT_EQ(error_of([&] { links_[0]->probe_all(store, peers_, 0, seconds(2)); }),
            "host 2 does not come");
  EXPECT_THAT(links_[0]->cuts(), IsEmpty());
}

}  // namespace
}  // namespace rubato::hosts_detail
