// Hosts connect with each other, whatever strangers do at their ports.

#include "hosts/c10d/peer_connector.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "c10d/support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/stranger.hpp"

namespace rubato::hosts_detail {
namespace {

using rendezvous_detail::Socket;
using std::chrono::minutes;
using std::chrono::seconds;
using test::Stranger;

class PeersThatConnect : public testing::Test {
 protected:
  void come(const std::vector<std::string>& tokens, milliseconds patience = minutes(1)) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < tokens.size(); ++i) names.push_back(fmt::format("host {}", i));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      peers_.push_back(
          std::make_unique<PeerConnector>(PeerConnector::Options{.rank = i,
                                                                 .names = names,
                                                                 .interface = "127.0.0.1",
                                                                 .token = tokens[i],
                                                                 .patience = patience,
                                                                 .look = [this] { look(); }}));
      places_.push_back(peers_.back()->place());
    }
  }
  [[nodiscard]] sockaddr_in address_of(std::size_t host) const {
    sockaddr_storage address = places_[host].address;
    return *static_cast<sockaddr_in*>(static_cast<void*>(&address));
  }
  [[nodiscard]] int port_of(std::size_t host) const { return ntohs(address_of(host).sin_port); }
  // What these throw, where each connects with all others and tells them its rank.
  std::vector<std::string> errors_of(const std::set<std::size_t>& hosts) {
    std::vector<std::string> errors(peers_.size(), "does not come");
    std::vector<std::jthread> threads;
    for (const std::size_t own : hosts) {
      threads.emplace_back([&, own] { errors[own] = error_of([&] { meet_all(own); }); });
    }
    threads.clear();
    return errors;
  }
  void meet_all(std::size_t own) {
    const Clock::time_point end = Clock::now() + minutes(1);
    std::vector<std::pair<std::size_t, Socket>> sockets;
    for (std::size_t other = 0; other < peers_.size(); ++other) {
      if (other == own) continue;
      sockets.emplace_back(other, peers_[own]->connect(other, places_[other]));
      ASSERT_EQ(sockets.back().second.send(fmt::to_string(own)), 1U);
    }
    for (const auto& [other, socket] : sockets) {
      std::string said;
      ASSERT_TRUE(wait_until(rendezvous_detail::Until::readable, socket, end));
      socket.receive(said);
      EXPECT_EQ(said, fmt::to_string(other));
    }
  }
  virtual void look() {}

  std::vector<std::unique_ptr<PeerConnector>> peers_;
  std::vector<PeerConnector::Place> places_;
};

TEST_F(PeersThatConnect, AreAllConnected) {
  for (const std::string token : {"", "open sesame"}) {
    peers_.clear();
    places_.clear();
    come(std::vector<std::string>(4, token));
    EXPECT_THAT(errors_of({0, 1, 2, 3}), Each("no error"));
  }
}

// They come before and meanwhile, more of them than are kept; some say as much as a host does, and
// most reset their connection.
TEST_F(PeersThatConnect, AreNotDisturbedByStrangers) {
  come({"a", "a", "a"});
  std::vector<Stranger> silent;
  for (int i = 0; i < 400; ++i) silent.emplace_back(port_of(0));
  std::atomic<bool> ends = false;
  std::jthread crowd([&] {
    while (!ends) {
      Stranger::scan(address_of(0));
      Stranger::scan(address_of(0), std::string(104, '0'));
    }
  });
  EXPECT_THAT(errors_of({0, 1, 2}), Each("no error"));
  ends = true;
}

// As many as are kept: the oldest one makes room for a new one only.
TEST_F(PeersThatConnect, DropNobodyBeforeAnotherComes) {
  come({"", ""}, seconds(1));
  std::vector<Stranger> silent;
  for (int i = 0; i < 256; ++i) silent.emplace_back(port_of(0));
  EXPECT_THAT(errors_of({0})[0], StartsWith("host 1 is not connected: "));
  EXPECT_TRUE(std::ranges::all_of(silent, &Stranger::is_connected));
}

TEST_F(PeersThatConnect, ProveThatTheyKnowTheToken) {
  come({"open sesame", "open barley"}, seconds(1));
  const auto errors = errors_of({0, 1});
  EXPECT_EQ(errors[0], "host 1 is not connected: it does not call within the time limit");
  EXPECT_THAT(errors[1], StartsWith("host 0 is not connected: "));
}

TEST_F(PeersThatConnect, ProveThatTheyKnowThePlace) {
  come({"", ""}, seconds(1));
  ++places_[0].secret;
  EXPECT_THAT(errors_of({0, 1}), ElementsAre(StartsWith("host 1 is not connected: "),
                                             StartsWith("host 0 is not connected: ")));
}

// Whoever answers at the place of a host has to prove it, too.
TEST_F(PeersThatConnect, AreNotTakenInByAnother) {
  come({"open sesame", "open sesame"});
  Socket impostor = rendezvous_detail::listen_at("127.0.0.1", 0);
  places_[0].address = own_address(impostor);
  std::jthread answers([&] {
    static_cast<void>(
        wait_until(rendezvous_detail::Until::readable, impostor, Clock::now() + minutes(1)));
    int error = 0;
    const Socket caller = accept_from(impostor, error);
    static_cast<void>(caller.send(std::string(64, '0')));
    std::string said;
    const Clock::time_point end = Clock::now() + minutes(1);
    while (said.size() < 104) {
      static_cast<void>(wait_until(rendezvous_detail::Until::readable, caller, end));
      caller.receive(said);
    }
  });
  EXPECT_EQ(errors_of({1})[1], "host 0 is not connected: somebody else answers in its place");
}

TEST_F(PeersThatConnect, AreGivenUpInTime) {
  come({"", "", ""}, seconds(1));
  EXPECT_THAT(
      errors_of({0, 2}),
      ElementsAre("host 1 is not connected: it does not call within the time limit",
                  "does not come", StartsWith("host 1 is not connected: it does not answer")));
  // Whoever has gone is refused by the system, at once.
  peers_.clear();
  places_.clear();
  come({"", ""});
  peers_[0].reset();
  EXPECT_EQ(errors_of({1})[1], "host 0 is not connected: Connection refused");
  // Exit code 28, of fixed hosts as well.
  EXPECT_THROW(static_cast<void>(peers_[1]->connect(0, places_[0])), HostLost);
}

class PeersThatLookAround : public PeersThatConnect {
 protected:
  void look() override { throw HostLost("host 1 has gone"); }
};

// Long before the time limit.
TEST_F(PeersThatLookAround, WaitForNobodyWhoHasGone) {
  come({"", "", ""});
  EXPECT_THAT(errors_of({0, 2}),
              ElementsAre("host 1 is not connected: host 1 has gone", "does not come",
                          "host 1 is not connected: host 1 has gone"));
}

}  // namespace
}  // namespace rubato::hosts_detail
