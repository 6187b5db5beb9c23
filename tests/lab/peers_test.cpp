#include "lab/peers.hpp"

#include <string>

#include <gmock/gmock.h>

#include "lab/peers/timing.hpp"

namespace rubato::lab {
namespace {

using testing::Each;
using testing::ElementsAre;

const ReduceTask kPeerTask{.cores = 8, .size = 1000};
const MeasureOptions kPeerOptions{
    .arrival = Arrival::straggler, .cache = Cache::cold, .seconds = 0.5};

TEST(Peers, AreToldWhatToDoAndUnderWhatConditions) {
  const Peer peer{.name = "peer",
                  .command = R"(sh -c '[ "$*" = "1000 0.5 8 straggler cold" ] && )"
                             R"(echo 0.3 0.1 0.5 7' peer)"};
  const auto measurement = measure(peer, kPeerTask, kPeerOptions);
  ASSERT_TRUE(measurement);
  EXPECT_EQ(measurement->median, 0.3);
  EXPECT_EQ(measurement->min, 0.1);
  EXPECT_EQ(measurement->max, 0.5);
  EXPECT_EQ(measurement->runs, 7);
}

TEST(Peers, MayBeStartedOnAsManyRanksAsThereAreCores) {
  const auto measurement =
      measure(Peer{.name = "peer", .command = "echo {ranks} 1 9 3 #"}, kPeerTask, kPeerOptions);
  ASSERT_TRUE(measurement);
  EXPECT_EQ(measurement->median, 8);
}

TEST(Peers, ThatFailMeasureNothing) {
  EXPECT_FALSE(measure(Peer{.name = "peer", .command = "false"}, kPeerTask, kPeerOptions));
  EXPECT_FALSE(
      measure(Peer{.name = "peer", .command = "echo no numbers #"}, kPeerTask, kPeerOptions));
}

TEST(PeerRuns, CountFromTheLastArrivalAfterTwoThatDoNotCount) {
  PeerRuns runs({.seconds = 2, .ranks = 3, .arrival = Arrival::skewed});
  EXPECT_THAT(runs.arrivals(), Each(0.0));
  runs.add(64);  // connects
  EXPECT_THAT(runs.arrivals(), Each(0.0));
  runs.add(0.5);
  EXPECT_THAT(runs.arrivals(), ElementsAre(0, 0.5, 1));
  for (const double seconds : {1.25, 1.5, 1.125, 1.75}) {
    runs.add(seconds);
    EXPECT_TRUE(runs.more());
  }
  runs.add(2);
  EXPECT_FALSE(runs.more());
  EXPECT_THAT(runs.seconds(), ElementsAre(0.25, 0.5, 0.125, 0.75, 1));
}

TEST(PeerRuns, GoOnForAsLongAsAskedFor) {
  PeerRuns runs({.seconds = 4, .ranks = 2});
  int count = 0;
  for (; runs.more(); ++count) runs.add(0.25);
  EXPECT_EQ(count, 2 + 16);
}

}  // namespace
}  // namespace rubato::lab
