// What a host does after an event, by its part in the run.

#include "hosts/elastic/roles.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>

namespace rubato::hosts_detail {

std::ostream& operator<<(std::ostream& out, HostAction action) {
  return out << static_cast<int>(action);
}

namespace {

using testing::ElementsAre;
using Action = HostAction;

constexpr HostPart kNewcomer{};
constexpr HostPart kFollower{.role = HostRole::follower};
constexpr HostPart kWriter{.role = HostRole::writer};

std::vector<HostStanding> standings_of(const std::vector<std::int64_t>& steps) {
  std::vector<HostStanding> standings;
  for (const std::int64_t done : steps) {
    standings.push_back(done < 0 ? HostStanding{} : HostStanding{.steps = done});
  }
  return standings;
}

// What the host of that rank does in a new group; -1 for hosts without a state.
std::vector<Action> formed(const std::vector<std::int64_t>& steps, std::size_t rank,
                           const HostPart& part) {
  return actions_after(GroupFormed{.rank = rank, .transfer = transfer_among(standings_of(steps))},
                       part);
}

TEST(StateTransfer, GoesFromTheFurthestToThoseWhoLackMoreThanAStep) {
  struct Case {
    std::vector<std::int64_t> steps;
    std::size_t from;
    std::vector<bool> to;
  };
  const std::vector<Case> cases{
      {{-1, -1}, 0, {false, true}},          {{5, 5}, 0, {false, false}},
      {{4, 5}, 1, {false, false}},           {{3, 5}, 1, {true, false}},
      {{0, -1, 0}, 0, {false, true, false}}, {{-1, 7, 6}, 1, {true, false, false}}};
  for (const Case& one : cases) {
    const StateTransfer transfer = transfer_among(standings_of(one.steps));
    EXPECT_EQ(transfer.from, one.from) << testing::PrintToString(one.steps);
    EXPECT_EQ(transfer.to, one.to) << testing::PrintToString(one.steps);
  }
}

TEST(Roles, AGroupBegins) {
  EXPECT_THAT(actions_after(Arrived{}, kNewcomer), ElementsAre(Action::meet));
  EXPECT_THAT(formed({-1, -1}, 0, kNewcomer),
              ElementsAre(Action::begin, Action::transfer, Action::report_group, Action::train));
  EXPECT_THAT(formed({-1, -1}, 1, kNewcomer),
              ElementsAre(Action::transfer, Action::follow, Action::report_group, Action::train));
  EXPECT_THAT(formed({-1}, 0, kNewcomer),
              ElementsAre(Action::begin, Action::report_group, Action::train));
}

TEST(Roles, AGroupGoesOn) {
  EXPECT_THAT(formed({5, 4}, 0, kWriter), ElementsAre(Action::report_group, Action::train));
  EXPECT_THAT(formed({5, 4}, 1, kFollower), ElementsAre(Action::report_group, Action::train));
  EXPECT_THAT(formed({4, 5}, 0, kFollower),
              ElementsAre(Action::take_over, Action::report_group, Action::train));
  // All make the exchanges of a transfer.
  EXPECT_THAT(formed({5, 5, -1}, 1, kFollower),
              ElementsAre(Action::transfer, Action::report_group, Action::train));
  EXPECT_THAT(formed({3, 5}, 1, kFollower),
              ElementsAre(Action::transfer, Action::report_group, Action::train));
  // Left behind, even the first one is given a newer state, and then writes the run.
  EXPECT_THAT(formed({3, 5}, 0, kWriter),
              ElementsAre(Action::forget, Action::transfer, Action::follow, Action::take_over,
                          Action::report_group, Action::train));
}

TEST(Roles, TrainingEnds) {
  for (const HostPart& part : {kFollower, kWriter}) {
    EXPECT_THAT(actions_after(TrainingEnded{}, part),
                ElementsAre(Action::wait_for_all, Action::end_complete, Action::conclude));
    EXPECT_THAT(actions_after(TrainingEnded{.paused = true}, part),
                ElementsAre(Action::end_stopped, Action::conclude));
    EXPECT_THAT(actions_after(TrainingEnded{.to_regroup = true}, part), ElementsAre(Action::meet));
    EXPECT_THAT(actions_after(TrainingEnded{.to_regroup = true, .leaves = true}, part),
                ElementsAre(Action::leave));
    EXPECT_THAT(actions_after(TrainingEnded{.alone = true}, part), ElementsAre(Action::conclude));
  }
}

TEST(Roles, HostsAreLost) {
  EXPECT_THAT(actions_after(GroupLost{.may_regroup = true}, kWriter), ElementsAre(Action::meet));
  for (const HostEvent& event : {HostEvent(GroupLost{}), HostEvent(MeetingFailed{})}) {
    EXPECT_THAT(actions_after(event, kNewcomer), ElementsAre(Action::rethrow));
    EXPECT_THAT(actions_after(event, kFollower),
                ElementsAre(Action::keep_copy, Action::call_it_a_copy, Action::fail));
    EXPECT_THAT(actions_after(event, kWriter), ElementsAre(Action::call_it_a_copy, Action::fail));
  }
}

TEST(Roles, TheUserAsksForAnEndBetweenGroups) {
  const MeetingFailed stop{.asked_to_end = true};
  EXPECT_THAT(actions_after(stop, kNewcomer), ElementsAre(Action::see_end));
  EXPECT_THAT(actions_after(stop, kFollower), ElementsAre(Action::end_stopped, Action::see_end));
  const MeetingFailed leave{.asked_to_end = true, .asked_to_leave = true};
  EXPECT_THAT(actions_after(leave, kNewcomer), ElementsAre(Action::leave));
  EXPECT_THAT(actions_after(leave, kWriter), ElementsAre(Action::end_stopped, Action::see_end));
  EXPECT_THAT(
      actions_after(
          MeetingFailed{.asked_to_end = true, .asked_to_leave = true, .can_be_spared = true},
          kWriter),
      ElementsAre(Action::leave));
}

TEST(Roles, TheRunIsOver) {
  const RunOver complete{.has_place = true};
  EXPECT_THAT(actions_after(complete, kNewcomer), ElementsAre(Action::miss_run));
  EXPECT_THAT(actions_after(complete, kFollower), ElementsAre(Action::miss_end));
  EXPECT_THAT(actions_after(complete, {.role = HostRole::follower, .finished = true}),
              ElementsAre(Action::conclude));
  const RunOver stopped{.paused = true, .has_place = true};
  EXPECT_THAT(actions_after(stopped, kNewcomer), ElementsAre(Action::miss_run));
  EXPECT_THAT(actions_after(stopped, kWriter), ElementsAre(Action::stop));
  EXPECT_THAT(actions_after(stopped, kFollower),
              ElementsAre(Action::take_wanted_folder, Action::stop));
  EXPECT_THAT(actions_after(RunOver{.paused = true}, kFollower), ElementsAre(Action::miss_end));
}

TEST(Roles, TheUserStopsTheRun) {
  const RunOver asked{.paused = true, .asked_to_end = true, .has_place = true};
  EXPECT_THAT(actions_after(asked, kNewcomer), ElementsAre(Action::stop_as_newcomer));
  EXPECT_THAT(actions_after(asked, kWriter), ElementsAre(Action::stop));
  EXPECT_THAT(actions_after(asked, kFollower),
              ElementsAre(Action::take_wanted_folder, Action::stop));
  const RunOver behind{.asked_to_end = true, .has_place = true, .folder_has_more = true};
  EXPECT_THAT(actions_after(behind, kFollower), ElementsAre(Action::stop));
  const RunOver alone{.asked_to_end = true, .has_place = true, .alone = true};
  EXPECT_THAT(actions_after(alone, kFollower), ElementsAre(Action::stop_as_follower));
  EXPECT_THAT(actions_after(alone, kWriter), ElementsAre(Action::call_it_a_copy, Action::stop));
}

TEST(Roles, NobodyCanWrite) {
  const RunOver elsewhere{.paused = true, .has_place = true, .write_failed = true};
  EXPECT_THAT(actions_after(elsewhere, kFollower),
              ElementsAre(Action::keep_checkpoint, Action::give_up_writing));
  EXPECT_THAT(actions_after(elsewhere, kWriter), ElementsAre(Action::give_up_writing));
  EXPECT_THAT(
      actions_after(
          RunOver{.paused = true, .has_place = true, .write_failed = true, .failed_here = true},
          kFollower),
      ElementsAre(Action::give_up_writing));
  const auto failed = [](Failed::In in, std::int64_t steps, const HostPart& part) {
    return actions_after(Failed{.in = in, .steps = steps}, part);
  };
  EXPECT_THAT(failed(Failed::In::begin, 0, kNewcomer),
              ElementsAre(Action::end_stopped, Action::rethrow));
  EXPECT_THAT(failed(Failed::In::train, 3, kWriter),
              ElementsAre(Action::announce_failure, Action::rethrow));
  EXPECT_THAT(failed(Failed::In::train, 3, kFollower), ElementsAre(Action::rethrow));
  EXPECT_THAT(failed(Failed::In::take_over, 3, kFollower),
              ElementsAre(Action::keep_in_temporary_folder, Action::announce_failure,
                          Action::end_stopped, Action::rethrow));
  EXPECT_THAT(failed(Failed::In::take_over, 0, kFollower),
              ElementsAre(Action::announce_failure, Action::end_stopped, Action::rethrow));
}

TEST(Roles, PartsFollowActions) {
  EXPECT_EQ(part_after(Action::begin, kNewcomer), kWriter);
  EXPECT_EQ(part_after(Action::follow, kNewcomer), kFollower);
  EXPECT_EQ(part_after(Action::forget, kWriter), kNewcomer);
  EXPECT_EQ(part_after(Action::train, kFollower), kFollower);
  // A successor has the result still to write.
  EXPECT_EQ(part_after(Action::take_over, {.role = HostRole::follower, .finished = true}), kWriter);
}

}  // namespace
}  // namespace rubato::hosts_detail
