// Hosts of a run under all that may happen to them (membership_model.hpp).

#include "c10d/membership_model.hpp"

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace rubato::hosts_detail {
namespace {

// Of the shortest way to a violation, what happened; empty where there is none.
std::string explore(const World& start, int depth, std::size_t& states) {
  struct Visit {
    World world;
    int depth;
    std::size_t from;
    std::string told;
  };
  std::deque<Visit> visits{{start, 0, 0, "in the beginning"}};
  std::unordered_set<std::string> seen{start.text()};
  const auto story = [&](std::size_t at, const std::string& end) {
    std::string text = end;
    for (; at != 0; at = visits[at].from) text.insert(0, 1, '\n').insert(0, visits[at].told);
    return text;
  };
  for (std::size_t at = 0; at < visits.size(); ++at) {
    Model rest(visits[at].world);
    if (!rest.comes_to_rest()) {
      return story(at,
                   "they do not come to rest; " + rest.violation() + "\n" + rest.world().text());
    }
    if (visits[at].depth == depth) continue;
    for (int number = 0;; ++number) {
      Model model(visits[at].world);
      if (!model.act(number)) break;
      if (!model.violation().empty()) {
        return story(at, model.told() + "\n" + model.violation() + "\n" + model.world().text());
      }
      if (!seen.insert(model.world().text()).second) continue;
      visits.push_back({model.world(), visits[at].depth + 1, at, model.told()});
    }
  }
  states = visits.size();
  return {};
}

World beginning(int hosts, const Budget& budget) {
  World world{.hosts = std::vector<Host>(static_cast<std::size_t>(hosts)), .left = budget};
  return world;
}

// A group of so many that trains, and others that have not come.
World in_training(int members, int hosts, const Budget& budget) {
  World world = beginning(hosts, budget);
  Members group{.generation = 1, .first_open = members + 1};
  for (HostNumber number = 1; number <= members; ++number) group.hosts.push_back({.host = number});
  for (HostNumber number = 1; number <= members; ++number) {
    world.hosts[static_cast<std::size_t>(number - 1)] = {
        .phase = Phase::training,
        .own = number,
        .place = group,
        .newest = group,
        .steps = 1,
        .state = 1,
        .part = {.role = number == 1 ? HostRole::writer : HostRole::follower},
        .store = 1};
  }
  world.has_run = true;
  world.turns.emplace(1, group);
  world.newest = 1;
  world.arrivals = members;
  world.committed = 1;
  world.trained = 1;
  return world;
}

void expect_no_violation(const World& start, int depth) {
  std::size_t states = 0;
  EXPECT_EQ(explore(start, depth, states), "");
  ::testing::Test::RecordProperty("states", static_cast<int>(states));
  fmt::print("{} states\n", states);
}

TEST(MembershipModel, HostsThatComeAndDie) {
  expect_no_violation(beginning(3, {.deaths = 1, .steps = 1}), 9);
}
TEST(MembershipModel, HostsThatStall) {
  expect_no_violation(in_training(2, 3, {.stalls = 1, .steps = 1}), 11);
}
TEST(MembershipModel, HostsThatDieInAStep) {
  expect_no_violation(in_training(3, 4, {.deaths = 1, .steps = 1}), 9);
}
TEST(MembershipModel, HostsThatAreAskedToStop) {
  expect_no_violation(in_training(2, 2, {.stalls = 1, .stops = 1, .steps = 1}), 12);
}
TEST(MembershipModel, HostsThatLoseLinks) {
  expect_no_violation(in_training(3, 4, {.cuts = 2, .steps = 1}), 7);
}
TEST(MembershipModel, HostsThatComeAndLackLinks) {
  expect_no_violation(beginning(3, {.deaths = 1, .cuts = 1, .steps = 1}), 9);
}
TEST(MembershipModel, HostsThatLoseLinksAndStall) {
  expect_no_violation(in_training(3, 3, {.stalls = 1, .cuts = 1, .steps = 1}), 8);
}
TEST(MembershipModel, HostsThatStopAfterTheWriterHasDied) {
  expect_no_violation(in_training(2, 2, {.deaths = 1, .stops = 2, .steps = 1}), 10);
}
TEST(MembershipModel, HostsThatLoseTheHandover) {
  expect_no_violation(in_training(2, 3, {.deaths = 1, .handovers = 1, .steps = 1}), 10);
}
TEST(MembershipModel, AStoreThatIsStartedAgain) {
  expect_no_violation(in_training(2, 3, {.deaths = 1, .stores = 1, .steps = 1}), 10);
}

}  // namespace
}  // namespace rubato::hosts_detail
