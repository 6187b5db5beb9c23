// One connection, step by step.

#include "hosts/rendezvous/connection.hpp"

#include <array>
#include <utility>

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include "hosts/rendezvous/protocol.hpp"
#include "support/error_of.hpp"

namespace rubato::rendezvous_detail {
namespace {

using std::chrono::hours;

// Both sides of one; little fits in between.
struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    const int bytes = 4096;
    EXPECT_EQ(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    server = Socket(ends[0]);
    client = Socket(ends[1]);
  }
  Socket server;
  Socket client;
};

class ConnectionOf : public testing::Test {
 protected:
  void SetUp() override {
    EXPECT_EQ(connection_.proceed(values_), "");
    const Message challenge = heard();
    say({.kind = Kind::hello, .fields = {"mine", client_proof("", challenge.fields[1], "mine")}});
    EXPECT_EQ(connection_.proceed(values_), "");
    EXPECT_EQ(connection_.proceed(values_), "");
    EXPECT_EQ(heard().kind, Kind::welcome);
    EXPECT_TRUE(connection_.is_proven());
    EXPECT_EQ(connection_.deadline(), std::nullopt);
    EXPECT_EQ(connection_.events(), POLLIN);
  }
  void say(const Message& message) const {
    const std::string bytes = bytes_of(message);
    EXPECT_EQ(pair_.client.send(bytes), bytes.size());
  }
  [[nodiscard]] Message heard() const {
    std::string bytes;
    pair_.client.receive(bytes);
    MessageReader reader(kMaxMessageBytes);
    reader.add(bytes);
    return reader.take().value_or(Message{.kind = Kind::refused});
  }

  Pair pair_;
  KeyValues values_{1'000'000};
  Connection connection_{std::move(pair_.server), "", hours(1)};
};

// An answer that nobody takes is held for its client alone, and not for ever.
TEST_F(ConnectionOf, AClientThatTakesNoAnswerHasATimeLimit) {
  values_.set("large", std::string(500'000, 'x'));
  say({.kind = Kind::get, .fields = {"large", "0"}});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(connection_.proceed(values_), "");
  EXPECT_EQ(connection_.events(), POLLOUT);
  EXPECT_GT(connection_.buffered(), 300'000);
  ASSERT_TRUE(connection_.deadline());
  EXPECT_EQ(error_of([&] { connection_.expire(); }), "the client is silent");
}

// Those that wait for the key hear of it.
TEST_F(ConnectionOf, AClientThatGoesHasPutWhatItPut) {
  for (const Message& message :
       {Message{.kind = Kind::set, .fields = {"set", "1"}},
        Message{.kind = Kind::compare_set, .fields = {"compared", "", "1"}},
        Message{.kind = Kind::add, .fields = {"added", "1"}}}) {
    say(message);
    if (message.kind == Kind::add) pair_.client = Socket();
    EXPECT_EQ(connection_.proceed(values_), message.fields[0]);
    EXPECT_THAT(values_.find(message.fields[0]), testing::Pointee(std::string("1")));
    if (message.kind == Kind::add) break;
    EXPECT_EQ(connection_.proceed(values_), "");
    EXPECT_EQ(heard().kind, Kind::value);
  }
  EXPECT_NE(error_of([&] { return connection_.proceed(values_); }), "no error");
}

TEST_F(ConnectionOf, AClientThatExpectsAnotherValueChangesNoKey) {
  values_.set("there", "1");
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>{"there", "1"}, {"missing", "2"}}) {
    say({.kind = Kind::compare_set, .fields = {key, "2", "2"}});
    EXPECT_EQ(connection_.proceed(values_), "") << key;
    EXPECT_EQ(connection_.proceed(values_), "");
    EXPECT_EQ(heard(), (Message{.kind = Kind::value, .fields = {value}}));
  }
}

}  // namespace
}  // namespace rubato::rendezvous_detail
