// What a host decides, by what it knows.

#include "c10d/membership.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace rubato::c10d_hosts_detail {

std::ostream& operator<<(std::ostream& out, Decision::Action action) {
  return out << static_cast<int>(action);
}

namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Action = Decision::Action;

constexpr MembershipOptions kOptions{
    .begin = 2, .least = 2, .most = 3, .timeout = std::chrono::seconds(60)};
constexpr milliseconds kLong = std::chrono::minutes(2);

SeenHost newcomer() {
  return {.life = Life::alive, .has_introduced_itself = true};
}
SeenHost silent() {
  return {.life = Life::alive};
}
SeenHost gone() {
  return {.life = Life::gone};
}
SeenHost here(std::int64_t steps) {
  return {.life = Life::alive, .here = HostStanding{.steps = steps}};
}

// Of host 1 of three, which wants to be in the generation after the fourth.
Snapshot of_first() {
  return {.own = 1,
          .standing = {.steps = 10},
          .place = 4,
          .newest = {.generation = 4,
                     .hosts = {{.host = 1}, {.host = 2}, {.host = 5}},
                     .first_open = 6},
          .arrivals = 5,
          .hosts = {{2, here(10)}, {5, here(10)}}};
}

std::vector<HostNumber> hosts_of(const Members& members) {
  std::vector<HostNumber> numbers;
  for (const Member& member : members.hosts) numbers.push_back(member.host);
  return numbers;
}

TEST(Membership, BeginsWithAllThatAreAskedFor) {
  Snapshot snapshot{.own = 1, .arrivals = 1};
  const Decision alone = decide(snapshot, kOptions);
  EXPECT_EQ(alone.action, Action::wait);
  EXPECT_EQ(alone.there, 1U);
  EXPECT_EQ(alone.wanted, 2U);
  snapshot.arrivals = 2;
  snapshot.hosts[2] = newcomer();
  const Decision both = decide(snapshot, kOptions);
  EXPECT_EQ(both.action, Action::propose);
  EXPECT_EQ(both.proposal.generation, 1);
  EXPECT_THAT(hosts_of(both.proposal), ElementsAre(1, 2));
  EXPECT_EQ(both.proposal.first_open, 3);
}

TEST(Membership, BeginsWithFewerWhenTheTimeIsUp) {
  MembershipOptions options = kOptions;
  options.least = 1;
  Snapshot snapshot{.own = 1, .arrivals = 1};
  snapshot.waited = options.timeout - milliseconds(1);
  EXPECT_EQ(decide(snapshot, options).action, Action::wait);
  snapshot.waited = options.timeout;
  EXPECT_EQ(decide(snapshot, options).action, Action::propose);
}

TEST(Membership, IsLedByTheFirstThatIsThere) {
  Snapshot snapshot{.own = 2, .arrivals = 3, .hosts = {{1, newcomer()}, {3, newcomer()}}};
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
  snapshot.hosts[1] = gone();
  const Decision decision = decide(snapshot, kOptions);
  EXPECT_EQ(decision.action, Action::propose);
  EXPECT_THAT(hosts_of(decision.proposal), ElementsAre(2, 3));
  snapshot.hosts[1] = {.life = Life::alive, .is_refused = true};
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::propose);
}

TEST(Membership, GoesOnWithThoseThatHaveCome) {
  Snapshot snapshot = of_first();
  Decision decision = decide(snapshot, kOptions);
  EXPECT_EQ(decision.action, Action::propose);
  EXPECT_EQ(decision.proposal.generation, 5);
  EXPECT_THAT(hosts_of(decision.proposal), ElementsAre(1, 2, 5));
  // One that lives may come; one that is gone is not waited for.
  snapshot.hosts[2] = silent();
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
  snapshot.hosts[2] = gone();
  decision = decide(snapshot, kOptions);
  EXPECT_THAT(hosts_of(decision.proposal), ElementsAre(1, 5));
  EXPECT_EQ(decision.proposal.hosts.front().standing, HostStanding{.steps = 10});
  snapshot.hosts[2] = silent();
  snapshot.waited = kLong;
  EXPECT_THAT(hosts_of(decide(snapshot, kOptions).proposal), ElementsAre(1, 5));
}

// Whoever is left out does not come back under its number.
TEST(Membership, ClosesNumbers) {
  Snapshot snapshot = of_first();
  snapshot.newest.first_open = 2;
  snapshot.arrivals = 7;
  snapshot.hosts[2] = gone();
  snapshot.hosts[3] = {.life = Life::unknown, .looked_for = kLong};
  snapshot.hosts[4] = gone();
  snapshot.hosts[6] = newcomer();
  snapshot.hosts[7] = gone();
  const Members next = decide(snapshot, kOptions).proposal;
  EXPECT_THAT(hosts_of(next), ElementsAre(1, 5, 6));
  EXPECT_EQ(next.first_open, 3);
  EXPECT_THAT(next.out, ElementsAre(4, 7));
}

// Whatever is seen of it: its number was closed by a generation before.
TEST(Membership, KeepsClosedNumbersClosed) {
  Snapshot snapshot = of_first();
  snapshot.newest.first_open = 3;
  snapshot.newest.out = {4};
  snapshot.arrivals = 6;
  snapshot.hosts[3] = newcomer();
  snapshot.hosts[4] = newcomer();
  snapshot.hosts[6] = silent();
  snapshot.hosts[6].looked_for = kLong;
  MembershipOptions options = kOptions;
  options.most = 9;
  EXPECT_THAT(hosts_of(decide(snapshot, options).proposal), ElementsAre(1, 2, 5, 3));
  // As long as there is one before it that is open.
  snapshot.hosts[3] = silent();
  snapshot.hosts[3].looked_for = kLong;
  const Members next = decide(snapshot, options).proposal;
  EXPECT_THAT(hosts_of(next), ElementsAre(1, 2, 5));
  EXPECT_EQ(next.first_open, 3);
  EXPECT_THAT(next.out, ElementsAre(4));
}

// One that is there leads, however long it takes; one that lives and does not come, only so long.
TEST(Membership, IsLedByTheFirstMemberThatHasCome) {
  Snapshot snapshot = of_first();
  snapshot.own = 2;
  snapshot.hosts = {{1, here(10)}, {5, here(10)}};
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
  snapshot.waited = kLong;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
  snapshot.hosts[1] = silent();
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::propose);
  snapshot.waited = {};
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
}

TEST(Membership, WaitsForWhoIntroducesItself) {
  Snapshot snapshot = of_first();
  snapshot.arrivals = 6;
  for (const SeenHost& host : {SeenHost{}, SeenHost{.life = Life::alive},
                               SeenHost{.life = Life::unknown, .has_introduced_itself = true}}) {
    snapshot.hosts[6] = host;
    EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
    snapshot.hosts[6].looked_for = kIntroduction;
    EXPECT_EQ(decide(snapshot, kOptions).action, Action::propose);
  }
}

TEST(Membership, RefusesWithTheReason) {
  Snapshot snapshot = of_first();
  snapshot.arrivals = 6;
  snapshot.hosts[6] = newcomer();
  snapshot.hosts[6].objection = "it has another --lr";
  const Decision decision = decide(snapshot, kOptions);
  EXPECT_THAT(decision.refusals, ElementsAre(Pair(6, "it has another --lr")));
  EXPECT_THAT(hosts_of(decision.proposal), ElementsAre(1, 2, 5));
}

// One of those that are there might just have died.
TEST(Membership, RefusesForWantOfRoomTheSecondTime) {
  Snapshot snapshot = of_first();
  snapshot.arrivals = 6;
  snapshot.hosts[6] = newcomer();
  Decision decision = decide(snapshot, kOptions);
  EXPECT_THAT(decision.refusals, IsEmpty());
  EXPECT_THAT(decision.proposal.passed, ElementsAre(6));
  EXPECT_EQ(decision.proposal.first_open, 6);
  snapshot.newest.passed = {6};
  decision = decide(snapshot, kOptions);
  EXPECT_THAT(decision.refusals, ElementsAre(Pair(6, HasSubstr("3 hosts already"))));
}

TEST(Membership, WaitsForOthersWithFewerThanThereHaveToBe) {
  Snapshot snapshot = of_first();
  snapshot.hosts[2] = snapshot.hosts[5] = gone();
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
  snapshot.standing.finished = true;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::propose);
}

TEST(Membership, TakesAPlaceThatIsThere) {
  Snapshot snapshot = of_first();
  snapshot.place = 3;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::take_place);
}

TEST(Membership, ComesAnewWhereOthersHaveGoneOn) {
  Snapshot snapshot = of_first();
  snapshot.own = 3;
  snapshot.place = 2;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::come_anew);
  // It waits then, and comes again where nobody has noticed it.
  snapshot.own = 8;
  snapshot.place = 0;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
  snapshot.waited = kLong;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::come_anew);
}

// It would begin anew what the others have trained.
TEST(Membership, FormsNoGroupWithoutAState) {
  Snapshot snapshot{.own = 3,
                    .place = 4,
                    .newest = {.generation = 4,
                               .hosts = {{.host = 1, .standing = {.steps = 8}}, {.host = 3}},
                               .first_open = 4},
                    .arrivals = 3,
                    .hosts = {{1, silent()}},
                    .waited = kLong};
  MembershipOptions options = kOptions;
  options.least = 1;
  EXPECT_EQ(decide(snapshot, options).action, Action::wait);
  snapshot.hosts[1] = gone();
  EXPECT_EQ(decide(snapshot, options).action, Action::give_up_alone);
}

TEST(Membership, GivesUpWhereNobodyHasTheState) {
  Snapshot snapshot = of_first();
  snapshot.own = 8;
  snapshot.place = 0;
  snapshot.hosts = {{1, gone()}, {2, gone()}, {5, silent()}};
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
  snapshot.hosts[5] = gone();
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::give_up_alone);
}

TEST(Membership, EndsBeforeAllElse) {
  Snapshot snapshot = of_first();
  snapshot.refusal = "no";
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::give_up_refused);
  snapshot.end = RunEnd::paused;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::end);
}

}  // namespace
}  // namespace rubato::c10d_hosts_detail
