// What a host decides, by what it knows.

#include "hosts/c10d/membership.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato::hosts_detail {

std::ostream& operator<<(std::ostream& out, Decision::Action action) {
  return out << static_cast<int>(action);
}

namespace {

using std::chrono::milliseconds;
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
  return {.life = Life::alive, .here = Here{.standing = {.steps = steps}}};
}

// Of host 1 of three, which wants to be in the generation after the fourth.
Snapshot of_first() {
  return {.own = 1,
          .here = {.standing = {.steps = 10}},
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
  snapshot.here.standing.finished = true;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::propose);
}

// With constant joins nobody would train.
TEST(Membership, IsNotHeldBackForLongByThoseThatCome) {
  Snapshot snapshot = of_first();
  snapshot.arrivals = 6;
  snapshot.hosts[6] = {.life = Life::alive};
  const Decision waits = decide(snapshot, kOptions);
  EXPECT_EQ(waits.action, Action::wait);
  EXPECT_EQ(waits.there, 3U);
  EXPECT_EQ(waits.wanted, 2U);
  snapshot.waited = kArrivals;
  const Decision goes_on = decide(snapshot, kOptions);
  EXPECT_EQ(goes_on.action, Action::propose);
  EXPECT_THAT(hosts_of(goes_on.proposal), ElementsAre(1, 2, 5));
  // It may come later.
  EXPECT_EQ(goes_on.proposal.first_open, 6);
  EXPECT_THAT(goes_on.proposal.out, IsEmpty());
}

// A link is lacking wherever one of its two ends says so. The number of steps of hosts 1, 2 and 5,
// -1 for none, and the links that they say are lacking: who is left out.
struct Lack {
  std::array<std::int64_t, 3> steps;
  std::vector<std::pair<HostNumber, HostNumber>> cuts;
  std::vector<HostNumber> left_out;
};

TEST(Membership, LeavesOutWhoeverTheOthersDoNotReach) {
  MembershipOptions options = kOptions;
  options.least = 1;
  const std::vector<Lack> cases{
      {{9, 9, 9}, {}, {}},
      // Who came last.
      {{9, 9, 9}, {{1, 2}}, {2}},
      {{9, 9, 9}, {{5, 2}}, {5}},
      {{-1, -1, -1}, {{2, 1}}, {2}},
      // Who is behind.
      {{8, 9, 9}, {{1, 5}}, {1}},
      // Who lacks more links, and that may be the one that decides.
      {{9, 9, 9}, {{1, 2}, {2, 5}}, {2}},
      {{9, 8, 8}, {{2, 1}, {5, 1}}, {1}},
      // A state is worth more than links.
      {{9, -1, -1}, {{2, 1}, {5, 1}}, {2, 5}},
      // Nobody reaches anybody.
      {{9, 9, 9}, {{1, 2}, {2, 5}, {5, 1}}, {2, 5}},
      // One that is not there.
      {{9, 9, 9}, {{1, 4}}, {}},
  };
  for (const auto& [steps, cuts, left_out] : cases) {
    SCOPED_TRACE(testing::PrintToString(cuts));
    Snapshot snapshot = of_first();
    const std::array<HostNumber, 3> numbers{1, 2, 5};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      Here& host = i == 0 ? snapshot.here : snapshot.hosts[numbers[i]].here.emplace();
      host.standing.steps.reset();
      if (steps[i] >= 0) host.standing.steps = steps[i];
      for (const auto& [from, to] : cuts) {
        if (from == numbers[i]) host.cuts[to] = fmt::format("{} cannot reach {}", from, to);
      }
    }
    const Decision decision = decide(snapshot, options);
    EXPECT_EQ(decision.action, Action::propose);
    std::vector<HostNumber> named;
    for (const auto& [host, why] : decision.proposal.cut_off) {
      named.push_back(host);
      EXPECT_THAT(why, AllOf(HasSubstr(std::to_string(host)), HasSubstr("cannot reach")));
      EXPECT_FALSE(decision.proposal.contains(host));
    }
    EXPECT_EQ(named, left_out);
    EXPECT_EQ(decision.proposal.hosts.size(), 3 - left_out.size());
  }
}

// Those that reach each other are too few to go on: the others may reach them again.
TEST(Membership, TriesAgainWithThoseItDoesNotReach) {
  Snapshot snapshot = of_first();
  snapshot.hosts[5] = gone();
  snapshot.here.cuts = {{2, "1 cannot reach 2"}};
  const Decision decision = decide(snapshot, kOptions);
  EXPECT_EQ(decision.action, Action::propose);
  EXPECT_THAT(hosts_of(decision.proposal), ElementsAre(1, 2));
  EXPECT_THAT(decision.proposal.cut_off, IsEmpty());
}

TEST(Membership, GivesUpWhereItIsLeftOutForWantOfALink) {
  Snapshot snapshot = of_first();
  snapshot.place = 3;
  snapshot.own = 3;
  snapshot.cut_off = "host 1 cannot reach host 3";
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::give_up_cut_off);
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
  snapshot.end = EndOfHosts::paused;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::end);
}

// --- A run that is over, and is opened again

// Of a newcomer to a run that two hosts have left after 40 steps.
Snapshot of_newcomer(std::optional<std::int64_t> brings) {
  return {.own = 3,
          .newest = {.generation = 4, .hosts = {{.host = 1}, {.host = 2}}, .first_open = 3},
          .steps = 40,
          .brings = brings,
          .arrivals = 3,
          .hosts = {{1, gone()}, {2, gone()}}};
}

TEST(Membership, ARunThatWasStoppedIsOpenedByWhoBringsWhatItHasComeTo) {
  Snapshot snapshot = of_newcomer(40);
  snapshot.end = EndOfHosts::paused;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::open_again);
  snapshot.brings = 41;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::open_again);
  for (const std::optional<std::int64_t> too_few :
       {std::optional<std::int64_t>(39), std::optional<std::int64_t>()}) {
    snapshot.brings = too_few;
    EXPECT_EQ(decide(snapshot, kOptions).action, Action::end);
  }
  // One that is complete stays so, and who has taken part in it goes.
  snapshot.brings = 40;
  snapshot.end = EndOfHosts::finished;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::end);
  snapshot.end = EndOfHosts::paused;
  snapshot.place = 4;
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::end);
}

TEST(Membership, ARunThatAllHaveLeftIsOpenedByWhoBringsACheckpoint) {
  EXPECT_EQ(decide(of_newcomer(7), kOptions).action, Action::open_again);
  EXPECT_EQ(decide(of_newcomer({}), kOptions).action, Action::give_up_alone);
  Snapshot snapshot = of_newcomer(7);
  snapshot.hosts[2] = silent();
  EXPECT_EQ(decide(snapshot, kOptions).action, Action::wait);
}

TEST(Membership, WhoBringsNothingMayWaitForWhoDoes) {
  MembershipOptions options = kOptions;
  options.waits_for_opening = true;
  Snapshot stopped = of_newcomer({});
  stopped.end = EndOfHosts::paused;
  for (Snapshot snapshot : {stopped, of_newcomer({})}) {
    EXPECT_EQ(decide(snapshot, options).action, Action::wait);
    snapshot.waited = kLong;
    EXPECT_EQ(decide(snapshot, options).action, snapshot.end ? Action::end : Action::give_up_alone);
  }
}

TEST(Membership, BeginsWithWhoBringsTheNewestCheckpoint) {
  Snapshot snapshot{.own = 1, .brings = 5, .arrivals = 3};
  snapshot.hosts[2] = newcomer();
  snapshot.hosts[3] = newcomer();
  EXPECT_THAT(hosts_of(decide(snapshot, kOptions).proposal), ElementsAre(1, 2, 3));
  snapshot.hosts[2].brings = 0;
  snapshot.hosts[3].brings = 6;
  EXPECT_THAT(hosts_of(decide(snapshot, kOptions).proposal), ElementsAre(3, 1, 2));
}

}  // namespace
}  // namespace rubato::hosts_detail
