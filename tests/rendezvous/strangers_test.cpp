// What others than hosts do at the port of a store: whoever is a client is served all the while.

#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "hosts/rendezvous/protocol.hpp"
#include "hosts/rendezvous/store_client.hpp"
#include "hosts/rendezvous/store_server.hpp"
#include "rendezvous/support.hpp"
#include "support/error_of.hpp"
#include "support/stranger.hpp"

namespace rubato::rendezvous_detail {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Stranger;

constexpr milliseconds kShort{50};

// Both a client that was there before and one that comes now.
void expect_served(StoreClient& client, const StoreServer& server) {
  EXPECT_GT(client.add("served", 1), 0);
  EXPECT_GT(StoreClient(at(server)).add("served", 1), 0);
}

Message heard_by(const Stranger& stranger) {
  MessageReader reader(kMaxMessageBytes);
  for (;;) {
    const std::string byte = stranger.hear(1);
    if (byte.empty()) return {.kind = Kind::refused, .fields = {"closed"}};
    reader.add(byte);
    if (const auto message = reader.take()) return *message;
  }
}

// One who speaks the protocol, and proves that it may.
Stranger introduced_at(const StoreServer& server, const std::string& token = "") {
  Stranger stranger(server.port());
  const Message challenge = heard_by(stranger);
  EXPECT_EQ(challenge.kind, Kind::challenge);
  stranger.say(bytes_of({.kind = Kind::hello,
                         .fields = {"mine", client_proof(token, challenge.fields.at(1), "mine")}}));
  EXPECT_EQ(heard_by(stranger).kind, Kind::welcome);
  return stranger;
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}
void wait_for_open_files(std::size_t count) {
  while (open_files() != count) std::this_thread::sleep_for(milliseconds(1));
}

TEST(Strangers, WhoSendNonsenseAreClosed) {
  const StoreServer server({.patience = hours(1)});
  StoreClient client(at(server));
  const auto expect_closed = [&](const Stranger& stranger, const std::string& nonsense) {
    stranger.say(nonsense);
    stranger.wait_for_end();
    expect_served(client, server);
  };
  for (const std::string& nonsense :
       {std::string("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), std::string(64, '\xff'),
        std::string("\x16\x03\x01\x02"), std::string(100'000, 'x'),
        // A client's message before it has proved that it may speak.
        bytes_of({.kind = Kind::set, .fields = {"key", "value"}}),
        // One that is longer than a hello may be.
        bytes_of({.kind = Kind::hello, .fields = {std::string(kMaxHelloBytes, 'x'), "y"}}),
        // One of a server.
        bytes_of({.kind = Kind::welcome, .fields = {"proof"}})}) {
    expect_closed(Stranger(server.port()), nonsense);
  }
  EXPECT_EQ(client.get("key"), std::nullopt);
  const std::string question = bytes_of({.kind = Kind::get, .fields = {"a", "0"}});
  for (const std::string& nonsense :
       {// 4 GiB are claimed.
        std::string("\xff\xff\xff\xff"), std::string("\0\0\0\1\x7f", 5),
        // Two questions at once.
        question + question}) {
    expect_closed(introduced_at(server), nonsense);
  }
}

TEST(Strangers, WhoAskForWhatThereIsNotAreRefused) {
  const StoreServer server({.patience = hours(1)});
  const Stranger stranger = introduced_at(server);
  for (const Message& message : {Message{.kind = Kind::welcome, .fields = {"proof"}},
                                 Message{.kind = Kind::hello, .fields = {"nonce", "proof"}},
                                 Message{.kind = Kind::get, .fields = {"key", "soon"}},
                                 Message{.kind = Kind::get, .fields = {"key", "-1"}},
                                 Message{.kind = Kind::add, .fields = {"key", "much"}}}) {
    stranger.say(bytes_of(message));
    EXPECT_EQ(heard_by(stranger).kind, Kind::refused);
  }
}

// A half message takes nothing from the others, and its sender is closed when its time is over.
TEST(Strangers, WhoDoNotEndTheirMessageAreClosed) {
  const std::string message = bytes_of({.kind = Kind::set, .fields = {"key", "some value"}});
  const StoreServer patient({.patience = hours(1)});
  StoreClient client(at(patient));
  const Stranger silent(patient.port());
  const Stranger begun(patient.port());
  begun.say(message.substr(0, 3));
  const Stranger in = introduced_at(patient);
  in.say(message.substr(0, message.size() - 1));
  for (int i = 0; i < 10; ++i) expect_served(client, patient);
  EXPECT_EQ(client.get("key"), std::nullopt);
  in.say(message.substr(message.size() - 1));
  EXPECT_EQ(heard_by(in), (Message{.kind = Kind::value, .fields = {""}}));
  EXPECT_EQ(client.get("key"), "some value");

  // Long enough to be introduced on a busy machine.
  const StoreServer server({.patience = seconds(2)});
  std::vector<Stranger> late;
  late.emplace_back(server.port());
  for (const std::size_t bytes : {std::size_t{1}, message.size() - 1}) {
    late.emplace_back(server.port());
    late.back().say(message.substr(0, bytes));
    late.push_back(introduced_at(server));
    late.back().say(message.substr(0, bytes));
  }
  for (const Stranger& stranger : late) stranger.wait_for_end();
}

// They have proved that they may be there, and may be silent for as long as they like.
TEST(Strangers, AreNotWhoHasNothingToSay) {
  const StoreServer server({.patience = kShort});
  StoreClient client(at(server));
  client.set("key", "value");
  Stranger(server.port()).wait_for_end();
  std::this_thread::sleep_for(2 * kShort);
  EXPECT_EQ(client.get("key"), "value");
  // And may wait for longer than it takes to send a message.
  EXPECT_EQ(client.get("missing", 2 * kShort), std::nullopt);
}

TEST(Strangers, MayGoInTheMiddle) {
  const StoreServer server({.patience = hours(1)});
  StoreClient client(at(server));
  const std::size_t files = open_files();
  for (const std::string& said : {std::string(), std::string("\0\0", 2),
                                  bytes_of({.kind = Kind::get, .fields = {"key", "1000000"}})}) {
    Stranger(server.port()).say(said);
    introduced_at(server).say(said);
    expect_served(client, server);
  }
  // What somebody waited for comes after they have gone.
  client.set("key", "value");
  wait_for_open_files(files);
}

// However many there are, and whatever they do not say, there is room for clients.
TEST(Strangers, MayBeMany) {
  const StoreServer server({.patience = hours(1), .max_connections = 40, .max_unproven = 20});
  StoreClient client(at(server));
  std::vector<Stranger> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.emplace_back(server.port());
    if (i % 20 == 0) expect_served(client, server);
  }
  for (int i = 0; i < 180; ++i) strangers[static_cast<std::size_t>(i)].wait_for_end();
  expect_served(client, server);
  // Whoever has proved that they may be there takes room: who comes then is closed at once.
  constexpr int kGuests = 39;
  std::vector<Stranger> guests;
  guests.reserve(kGuests);
  for (int i = 0; i < kGuests; ++i) guests.push_back(introduced_at(server));
  Stranger(server.port()).wait_for_end();
  EXPECT_GT(client.add("served", 1), 0);
  guests.pop_back();
  expect_served(client, server);
}

// The one with the most goes.
TEST(Strangers, WhoTakeMuchMemoryAreClosed) {
  const StoreServer server({.patience = hours(1), .max_buffered_bytes = 500'000});
  StoreClient client(at(server));
  const std::string half =
      bytes_of({.kind = Kind::set, .fields = {"key", std::string(600'000, 'x')}});
  const Stranger modest = introduced_at(server);
  modest.say(half.substr(0, 100'000));
  const Stranger greedy = introduced_at(server);
  greedy.say(half.substr(0, 510'000));
  greedy.wait_for_end();
  expect_served(client, server);
  modest.say(half.substr(100'000, 1));
  EXPECT_EQ(client.get("key"), std::nullopt);
}

// What was overheard on one connection proves nothing on another one.
TEST(Strangers, CannotRepeatAProof) {
  const std::string token = "open sesame";
  const StoreServer server({.token = token, .patience = hours(1)});
  const Stranger host(server.port());
  const std::string nonce = heard_by(host).fields.at(1);
  const Message hello{.kind = Kind::hello, .fields = {"mine", client_proof(token, nonce, "mine")}};
  host.say(bytes_of(hello));
  const Message welcome = heard_by(host);
  EXPECT_EQ(welcome.fields.at(0), server_proof(token, nonce, "mine"));
  const Stranger stranger(server.port());
  EXPECT_NE(heard_by(stranger).fields.at(1), nonce);
  stranger.say(bytes_of(hello));
  EXPECT_EQ(heard_by(stranger).kind, Kind::refused);
  stranger.wait_for_end();
  // Nor what the server said.
  const Stranger other(server.port());
  static_cast<void>(heard_by(other));
  other.say(bytes_of({.kind = Kind::hello, .fields = {"mine", welcome.fields.at(0)}}));
  EXPECT_EQ(heard_by(other).kind, Kind::refused);
}

// A client takes no server for one that does not know the token.
TEST(Strangers, CannotServe) {
  const Socket listener = listen_at("127.0.0.1", 0);
  std::thread client([&] {
    EXPECT_EQ(error_of([&] {
                const StoreClient deceived({.host = "127.0.0.1",
                                            .port = port_of(listener),
                                            .token = "open sesame",
                                            .timeout = seconds(60)});
              }),
              "it does not know the token that it asks for");
  });
  ASSERT_TRUE(wait_until(Until::readable, listener, Clock::now() + seconds(60)));
  int error = 0;
  const Socket socket = accept_from(listener, error);
  const std::string said =
      bytes_of({.kind = Kind::challenge, .fields = {std::string(kProtocol), "nonce", "token"}});
  EXPECT_EQ(socket.send(said), said.size());
  ASSERT_TRUE(wait_until(Until::readable, socket, Clock::now() + seconds(60)));
  std::string hello;
  socket.receive(hello);
  // Its own proof, which is of no use.
  MessageReader reader(kMaxMessageBytes);
  reader.add(hello);
  const auto heard = reader.take();
  ASSERT_TRUE(heard);
  const std::string welcome = bytes_of({.kind = Kind::welcome, .fields = {heard->fields.at(1)}});
  EXPECT_EQ(socket.send(welcome), welcome.size());
  client.join();
}

}  // namespace
}  // namespace rubato::rendezvous_detail
