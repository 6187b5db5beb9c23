#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>

#include "runs/lab/all_reduce_peers/timing.hpp"
#include "runs/lab/measure.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato::lab {
namespace {

const ReduceTask kPeerTask{.cores = 8, .size = 1000};
const MeasureOptions kPeerOptions{
    .arrival = Arrival::straggler, .cache = Cache::cold, .seconds = 0.5};

TEST(Peers, AreToldWhatToDoAndUnderWhatConditions) {
  const Peer peer{.name = "peer",
                  .command = R"(sh -c '[ "$*" = "1000 0.5 8 straggler cold" ] && )"
                             R"(printf "0.3\n1e-05\n0.5\nend\n"' peer)"};
  EXPECT_THAT(measure(peer, kPeerTask, kPeerOptions), ElementsAre(0.3, 1e-5, 0.5));
}

TEST(Peers, MayBeStartedOnAsManyRanksAsThereAreCores) {
  const Peer peer{.name = "peer", .command = "echo {ranks} end #"};
  EXPECT_THAT(measure(peer, kPeerTask, kPeerOptions), ElementsAre(8));
}

TEST(Peers, ThatFailMeasureNothing) {
  for (const char* const command : {"false", "echo no numbers #", "echo 0.5 0.25 #"}) {
    const Peer peer{.name = "peer", .command = command};
    EXPECT_THAT(measure(peer, kPeerTask, kPeerOptions), IsEmpty()) << command;
  }
}

TEST(Peers, TakeTurnsWithTheRest) {
  const test::TempFolder folder;
  const std::string log = (folder.path() / "log").string();
  const Peer peer{
      .name = "peer",
      .command = "sh -c 'echo \"$2\" >>" + log + "; wc -l <" + log + "; echo end' peer"};
  const std::vector<Entrant> entrants{entrant(peer, kPeerTask)};
  const auto measured = measure_in_turn(entrants, {.seconds = 6}, [](std::string_view, int) {});
  ASSERT_TRUE(measured[0]);
  EXPECT_EQ(measured[0]->median, 2) << "of 1, 2 and 3";
  EXPECT_EQ(measured[0]->runs, 3);
  EXPECT_EQ(test::read_file(log), "2\n2\n2\n") << "seconds of each turn";
}

TEST(Peers, AnswerWithTheSecondsOfEachRun) {
  testing::internal::CaptureStdout();
  print_timings({0.5, 1e-9, 0.25});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "0.5\n1e-09\n0.25\nend\n");
}

TEST(PeerRuns, CountFromTheLastArrivalAfterTwoThatDoNotCount) {
  PeerRuns runs({.seconds = 4, .ranks = 3, .arrival = Arrival::skewed});
  EXPECT_THAT(runs.arrivals(), Each(0.0));
  runs.add(64);  // connects
  EXPECT_THAT(runs.arrivals(), Each(0.0));
  runs.add(0.5);
  EXPECT_THAT(runs.arrivals(), ElementsAre(0, 0.5, 1));
  for (const double seconds : {1.25, 1.5, 1.125}) {
    runs.add(seconds);
    EXPECT_TRUE(runs.more());
  }
  runs.add(1.75);
  EXPECT_FALSE(runs.more());
  EXPECT_THAT(runs.seconds(), ElementsAre(0.25, 0.5, 0.125, 0.75));
}

TEST(PeerRuns, GoOnForAsLongAsAskedForButAreTwoAtLeast) {
  for (const auto& [seconds, each, expected] : {std::tuple(1.0, 64.0, 2), {4.0, 0.25, 16}}) {
    PeerRuns runs({.seconds = seconds, .ranks = 2});
    int count = 0;
    for (; runs.more(); ++count) runs.add(each);
    EXPECT_EQ(count, 2 + expected);
  }
}

}  // namespace
}  // namespace rubato::lab
