// A store's server and its clients.

#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "hosts/rendezvous/store_client.hpp"
#include "hosts/rendezvous/store_server.hpp"
#include "rendezvous/support.hpp"
#include "support/error_of.hpp"
#include "support/free_port.hpp"
#include "support/matchers.hpp"

namespace rubato::rendezvous_detail {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string error_of_connecting(const StoreClient::Options& options) {
  return error_of([&] { const StoreClient client(options); });
}

TEST(Store, HasWhatItsClientsPut) {
  const StoreServer server({});
  StoreClient one(at(server));
  StoreClient other(at(server));
  EXPECT_EQ(one.get("a"), std::nullopt);
  one.set("a", std::string("\0\xff", 2));
  EXPECT_EQ(other.get("a"), std::string("\0\xff", 2));
  EXPECT_EQ(other.compare_set("a", "", "x"), std::string("\0\xff", 2));
  EXPECT_EQ(other.compare_set("b", "", "x"), "x");
  EXPECT_EQ(one.get("b"), "x");
  EXPECT_EQ(one.add("n", 2), 2);
  EXPECT_EQ(other.add("n", -5), -3);
  const std::string large(900'000, 'x');
  one.set("large", large);
  EXPECT_EQ(other.get("large"), large);
}

TEST(Store, AnswersWhoWaitsOnceTheKeyIsThere) {
  const StoreServer server({});
  StoreClient putting(at(server));
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (const std::string key : {"set", "compared", "added"}) {
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, key] {
        StoreClient waiting(at(server));
        putting.add("waiting", 1);
        EXPECT_EQ(waiting.get(key, hours(1)), "1");
        ++answered;
        // And the next question has an answer of its own.
        EXPECT_EQ(waiting.get("nothing", milliseconds(1)), std::nullopt);
      });
    }
  }
  while (putting.get("waiting") != "9") std::this_thread::sleep_for(milliseconds(1));
  putting.set("something else", "1");
  EXPECT_EQ(answered, 0);
  putting.set("set", "1");
  putting.compare_set("compared", "", "1");
  putting.add("added", 1);
  for (std::thread& thread : threads) thread.join();
}

TEST(Store, SaysWhatItRefuses) {
  const StoreServer server({.max_kept_bytes = 1000});
  StoreClient client(at(server));
  client.set("text", "x");
  EXPECT_THROW(client.add("text", 1), Refused);
  EXPECT_THAT(error_of([&] { client.set("large", std::string(1000, 'x')); }),
              HasSubstr("the store is full"));
  EXPECT_THAT(error_of([&] { client.set("larger", std::string(2'000'000, 'x')); }),
              HasSubstr("accepted: up to 1048576"));
  EXPECT_EQ(client.get("text"), "x");
}

TEST(Store, OfATokenAsksForIt) {
  const StoreServer server({.token = "open sesame"});
  EXPECT_EQ(error_of_connecting(at(server, "open sesame")), "no error");
  EXPECT_EQ(server.refused(), 0);
  for (const std::string token : {"", "open barley"}) {
    EXPECT_EQ(error_of_connecting(at(server, token)),
              "it is served with another token; accepted: the same on all hosts");
  }
  EXPECT_EQ(server.refused(), 2);
  // One without serves runs of any token.
  const StoreServer without({});
  EXPECT_EQ(error_of_connecting(at(without, "open sesame")), "no error");
}

TEST(Store, IsWaitedForUntilItIsThere) {
  const test::FreePort port;
  std::thread client([&] {
    EXPECT_EQ(
        error_of_connecting({.host = "127.0.0.1", .port = port.number(), .timeout = seconds(60)}),
        "no error");
  });
  std::this_thread::sleep_for(milliseconds(20));
  const StoreServer server({.address = "127.0.0.1", .port = port.number()});
  client.join();
}

TEST(Store, ThatIsNotThereIsGivenUp) {
  const test::FreePort port;
  EXPECT_EQ(error_of_connecting(
                {.host = "127.0.0.1", .port = port.number(), .timeout = milliseconds(50)}),
            "Connection refused");
  EXPECT_NE(error_of_connecting({.host = "no such host", .timeout = milliseconds(50)}), "no error");
}

// A client whose store has gone says so, and again whenever it is asked.
TEST(Store, MayGo) {
  auto server = std::make_unique<StoreServer>(StoreServer::Options{});
  StoreClient client(at(*server));
  std::thread waiting([&] { EXPECT_THROW(static_cast<void>(client.get("a", hours(1))), Error); });
  std::this_thread::sleep_for(milliseconds(20));
  server.reset();
  waiting.join();
  EXPECT_EQ(error_of([&] { client.set("a", "b"); }), "the connection is closed");
}

TEST(Store, ListensWhereItIsAsked) {
  const StoreServer server({.address = "127.0.0.2"});
  StoreClient::Options options = at(server);
  options.timeout = milliseconds(50);
  EXPECT_EQ(error_of_connecting(options), "Connection refused");
  options = at(server);
  options.host = "127.0.0.2";
  EXPECT_EQ(error_of_connecting(options), "no error");
  EXPECT_EQ(
      error_of([&] { const StoreServer second({.address = "127.0.0.2", .port = server.port()}); }),
      "cannot serve the rendezvous at 127.0.0.2:" + std::to_string(server.port()) +
          ": Address already in use");
  // Of a network that there is nowhere.
  EXPECT_EQ(error_of([] { const StoreServer elsewhere({.address = "192.0.2.1"}); }),
            "cannot serve the rendezvous at 192.0.2.1:0: Cannot assign requested address");
  // By default everywhere, in both families where the machine has them.
  const StoreServer everywhere({});
  EXPECT_EQ(error_of_connecting(at(everywhere)), "no error");
}

}  // namespace
}  // namespace rubato::rendezvous_detail
