// What becomes of a run at a store that was started again.

#include <memory>
#include <string>

#include <gmock/gmock.h>

#include <rubato/hosts/c10d_hosts.hpp>

#include "hosts/c10d/presence.hpp"
#include "hosts/run_status/members.hpp"

namespace rubato::hosts_detail {
namespace {

constexpr milliseconds kTimeout = std::chrono::seconds(20);

// A store, which ends with it.
struct Served {
  [[nodiscard]] std::unique_ptr<Store> connection() const {
    return std::make_unique<Store>(C10dOptions{.port = server.port()}, "test", kTimeout);
  }
  RendezvousServer server{0};
};

// Of a host in the seventh generation of a run.
HostRecord record_of(HostNumber own, const std::string& run = "r1") {
  const Members members{
      .generation = 7, .hosts = {{.host = 3}, {.host = 9}}, .first_open = 4, .out = {11}};
  return {.keys = RunKeys(run),
          .own = own,
          .process = "process",
          .greeting = "hello",
          .proof = "proof",
          .members = members,
          .members_text = signed_text(members, "key"),
          .folder = "/runs/a"};
}

TEST(HostRecord, OfAHostWithoutAPlaceIsEmpty) {
  const Served served;
  const auto store = served.connection();
  std::string name;
  EXPECT_EQ(enter(*store, name, HostRecord{}), Entry::without_place);
  EXPECT_EQ(enter(*store, name, HostRecord{}), Entry::known);
  EXPECT_NE(name, "");
}

TEST(HostRecord, IsPutIntoAStoreThatIsAnotherOne) {
  const Served served;
  const auto store = served.connection();
  std::string name = "of the store before";
  const HostRecord record = record_of(9);
  EXPECT_EQ(enter(*store, name, record), Entry::restored);
  EXPECT_EQ(store->find(kRunKey), "r1");
  EXPECT_EQ(store->find(record.keys.turn(7)), record.members_text);
  EXPECT_EQ(store->find(record.keys.newest()), "7");
  EXPECT_EQ(store->find(record.keys.greeting(9)), "hello");
  EXPECT_EQ(store->find(record.keys.writer()), "9\n/runs/a");
  // Nobody gets a number that was given before.
  EXPECT_EQ(store->raise(record.keys.arrivals()), 12);
  // The others do the same, and change nothing.
  std::string name_of_other = "of the store before";
  EXPECT_EQ(enter(*store, name_of_other, record_of(3)), Entry::restored);
  EXPECT_EQ(store->raise(record.keys.arrivals()), 13);
  EXPECT_EQ(enter(*store, name, record), Entry::known);
}

// Those who were there before have the state.
TEST(HostRecord, IsWorthMoreThanARunThatBeganInBetween) {
  const Served served;
  const auto store = served.connection();
  std::string name_of_newcomer;
  EXPECT_EQ(enter(*store, name_of_newcomer, HostRecord{}), Entry::without_place);
  EXPECT_TRUE(store->put(kRunKey, "r2"));
  std::string name = "of the store before";
  EXPECT_EQ(enter(*store, name, record_of(9)), Entry::restored);
  EXPECT_EQ(store->find(kRunKey), "r1");
  EXPECT_EQ(enter(*store, name_of_newcomer, record_of(1, "r2")), Entry::displaced);
}

// Of two parts of a run the one goes on that has come back first.
TEST(HostRecord, IsWorthNothingWhereTheOthersHaveGoneOnOtherwise) {
  const Served served;
  const auto store = served.connection();
  const HostRecord record = record_of(9);
  EXPECT_TRUE(store->put(record.keys.turn(7), "other hosts"));
  std::string name = "of the store before";
  EXPECT_EQ(enter(*store, name, record), Entry::displaced);
}

}  // namespace
}  // namespace rubato::hosts_detail
