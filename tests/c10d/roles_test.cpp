// What a host does after an event, by its part in the run.

#include "hosts/elastic/roles.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato::hosts_detail {

std::ostream& operator<<(std::ostream& out, HostAction action) {
  return out << static_cast<int>(action);
}

namespace {

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
std::vector<HostAction> formed(const std::vector<std::int64_t>& steps, std::size_t rank,
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
  EXPECT_THAT(actions_after(Arrived{}, kNewcomer), ElementsAre(HostAction::meet));
  EXPECT_THAT(formed({-1, -1}, 0, kNewcomer),
              ElementsAre(HostAction::begin, HostAction::transfer, HostAction::report_group,
                          HostAction::train));
  EXPECT_THAT(formed({-1, -1}, 1, kNewcomer),
              ElementsAre(HostAction::transfer, HostAction::follow, HostAction::report_group,
                          HostAction::train));
  EXPECT_THAT(formed({-1}, 0, kNewcomer),
              ElementsAre(HostAction::begin, HostAction::report_group, HostAction::train));
}

TEST(Roles, AGroupGoesOn) {
  EXPECT_THAT(formed({5, 4}, 0, kWriter), ElementsAre(HostAction::report_group, HostAction::train));
  EXPECT_THAT(formed({5, 4}, 1, kFollower),
              ElementsAre(HostAction::report_group, HostAction::train));
  EXPECT_THAT(formed({4, 5}, 0, kFollower),
              ElementsAre(HostAction::take_over, HostAction::report_group, HostAction::train));
  // All make the exchanges of a transfer.
  EXPECT_THAT(formed({5, 5, -1}, 1, kFollower),
              ElementsAre(HostAction::transfer, HostAction::report_group, HostAction::train));
  EXPECT_THAT(formed({3, 5}, 1, kFollower),
              ElementsAre(HostAction::transfer, HostAction::report_group, HostAction::train));
  // Left behind, even the first one is given a newer state, and then writes the run.
  EXPECT_THAT(formed({3, 5}, 0, kWriter),
              ElementsAre(HostAction::forget, HostAction::transfer, HostAction::follow,
                          HostAction::take_over, HostAction::report_group, HostAction::train));
}

TEST(Roles, TrainingEnds) {
  for (const HostPart& part : {kFollower, kWriter}) {
    EXPECT_THAT(
        actions_after(TrainingEnded{}, part),
        ElementsAre(HostAction::wait_for_all, HostAction::end_complete, HostAction::conclude));
    EXPECT_THAT(actions_after(TrainingEnded{.paused = true}, part),
                ElementsAre(HostAction::end_stopped, HostAction::conclude));
    EXPECT_THAT(actions_after(TrainingEnded{.to_regroup = true}, part),
                ElementsAre(HostAction::meet));
    EXPECT_THAT(actions_after(TrainingEnded{.to_regroup = true, .leaves = true}, part),
                ElementsAre(HostAction::leave));
    EXPECT_THAT(actions_after(TrainingEnded{.alone = true}, part),
                ElementsAre(HostAction::conclude));
  }
}

TEST(Roles, HostsAreLost) {
  EXPECT_THAT(actions_after(GroupLost{.may_regroup = true}, kWriter),
              ElementsAre(HostAction::meet));
  for (const HostEvent& event : {HostEvent(GroupLost{}), HostEvent(MeetingFailed{})}) {
    EXPECT_THAT(actions_after(event, kNewcomer), ElementsAre(HostAction::rethrow));
    EXPECT_THAT(actions_after(event, kFollower),
                ElementsAre(HostAction::keep_copy, HostAction::call_it_a_copy, HostAction::fail));
    EXPECT_THAT(actions_after(event, kWriter),
                ElementsAre(HostAction::call_it_a_copy, HostAction::fail));
  }
}

TEST(Roles, TheUserAsksForAnEndBetweenGroups) {
  const MeetingFailed stop{.asked_to_end = true};
  EXPECT_THAT(actions_after(stop, kNewcomer), ElementsAre(HostAction::see_end));
  EXPECT_THAT(actions_after(stop, kFollower),
              ElementsAre(HostAction::end_stopped, HostAction::see_end));
  const MeetingFailed leave{.asked_to_end = true, .asked_to_leave = true};
  EXPECT_THAT(actions_after(leave, kNewcomer), ElementsAre(HostAction::leave));
  EXPECT_THAT(actions_after(leave, kWriter),
              ElementsAre(HostAction::end_stopped, HostAction::see_end));
  EXPECT_THAT(
      actions_after(
          MeetingFailed{.asked_to_end = true, .asked_to_leave = true, .can_be_spared = true},
          kWriter),
      ElementsAre(HostAction::leave));
}

TEST(Roles, TheRunIsOver) {
  const RunOver complete{.has_place = true};
  EXPECT_THAT(actions_after(complete, kNewcomer), ElementsAre(HostAction::miss_run));
  EXPECT_THAT(actions_after(complete, kFollower), ElementsAre(HostAction::miss_end));
  EXPECT_THAT(actions_after(complete, {.role = HostRole::follower, .finished = true}),
              ElementsAre(HostAction::conclude));
  const RunOver stopped{.paused = true, .has_place = true};
  EXPECT_THAT(actions_after(stopped, kNewcomer), ElementsAre(HostAction::miss_run));
  EXPECT_THAT(actions_after(stopped, kWriter), ElementsAre(HostAction::stop));
  EXPECT_THAT(actions_after(stopped, kFollower),
              ElementsAre(HostAction::take_wanted_folder, HostAction::stop));
  EXPECT_THAT(actions_after(RunOver{.paused = true}, kFollower), ElementsAre(HostAction::miss_end));
}

TEST(Roles, TheUserStopsTheRun) {
  const RunOver asked{.paused = true, .asked_to_end = true, .has_place = true};
  EXPECT_THAT(actions_after(asked, kNewcomer), ElementsAre(HostAction::stop_as_newcomer));
  EXPECT_THAT(actions_after(asked, kWriter), ElementsAre(HostAction::stop));
  EXPECT_THAT(actions_after(asked, kFollower),
              ElementsAre(HostAction::take_wanted_folder, HostAction::stop));
  const RunOver behind{.asked_to_end = true, .has_place = true, .folder_has_more = true};
  EXPECT_THAT(actions_after(behind, kFollower), ElementsAre(HostAction::stop));
  const RunOver alone{.asked_to_end = true, .has_place = true, .alone = true};
  EXPECT_THAT(actions_after(alone, kFollower), ElementsAre(HostAction::stop_as_follower));
  EXPECT_THAT(actions_after(alone, kWriter),
              ElementsAre(HostAction::call_it_a_copy, HostAction::stop));
}

TEST(Roles, NobodyCanWrite) {
  const RunOver elsewhere{.paused = true, .has_place = true, .write_failed = true};
  EXPECT_THAT(actions_after(elsewhere, kFollower),
              ElementsAre(HostAction::keep_checkpoint, HostAction::give_up_writing));
  EXPECT_THAT(actions_after(elsewhere, kWriter), ElementsAre(HostAction::give_up_writing));
  EXPECT_THAT(
      actions_after(
          RunOver{.paused = true, .has_place = true, .write_failed = true, .failed_here = true},
          kFollower),
      ElementsAre(HostAction::give_up_writing));
  const auto failed = [](Failed::In in, std::int64_t steps, const HostPart& part) {
    return actions_after(Failed{.in = in, .steps = steps}, part);
  };
  EXPECT_THAT(
      failed(Failed::In::begin, 0, kNewcomer),
      ElementsAre(HostAction::announce_failure, HostAction::end_stopped, HostAction::rethrow));
  EXPECT_THAT(failed(Failed::In::train, 3, kWriter),
              ElementsAre(HostAction::announce_failure, HostAction::rethrow));
  EXPECT_THAT(failed(Failed::In::train, 3, kFollower), ElementsAre(HostAction::rethrow));
  EXPECT_THAT(failed(Failed::In::take_over, 3, kFollower),
              ElementsAre(HostAction::keep_in_temporary_folder, HostAction::announce_failure,
                          HostAction::end_stopped, HostAction::rethrow));
  EXPECT_THAT(
      failed(Failed::In::take_over, 0, kFollower),
      ElementsAre(HostAction::announce_failure, HostAction::end_stopped, HostAction::rethrow));
}

TEST(Roles, PartsFollowActions) {
  EXPECT_EQ(part_after(HostAction::begin, kNewcomer), kWriter);
  EXPECT_EQ(part_after(HostAction::follow, kNewcomer), kFollower);
  EXPECT_EQ(part_after(HostAction::forget, kWriter), kNewcomer);
  EXPECT_EQ(part_after(HostAction::train, kFollower), kFollower);
  // A successor has the result still to write.
  EXPECT_EQ(part_after(HostAction::take_over, {.role = HostRole::follower, .finished = true}),
            kWriter);
}

}  // namespace
}  // namespace rubato::hosts_detail
