// What steps take on the threads of a machine, out of two calibrations that are given.

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/calibration.hpp>
#include <rubato/runs/workload.hpp>

#include "support/matchers.hpp"

namespace rubato {
namespace {

// Five threads: a substep takes 2 s on one and 3 s on each of five, an update 1 s and 5 s.
MachineCalibration five_threads() {
  return {
      .alone = {.substep_seconds = 2, .update_seconds = 1, .gradient_bytes = 40},
      .together = {.substep_seconds = 3, .update_seconds = 5, .gradient_bytes = 40, .threads = 5}};
}

TEST(ThisMachine, LiesOnTheLineBetweenOneThreadAndAll) {
  const auto substep = [](int busy) { return this_machine(five_threads(), busy).substep_seconds; };
  const auto update = [](int busy) { return this_machine(five_threads(), busy).update_seconds; };
  EXPECT_THAT(substep(1), DoubleEq(2));
  EXPECT_THAT(update(1), DoubleEq(1));
  EXPECT_THAT(substep(3), DoubleEq(2.5));
  EXPECT_THAT(update(3), DoubleEq(3));
  EXPECT_THAT(substep(5), DoubleEq(3));
  EXPECT_THAT(update(5), DoubleEq(5));
  EXPECT_EQ(this_machine(five_threads(), 5).gradient_bytes, 0) << "there is no network";
}

TEST(ThisMachine, OfOneThreadIsWhatItWasMeasured) {
  const Calibration one{.substep_seconds = 2, .update_seconds = 1};
  const MachineCalibration machine{.alone = one, .together = one};
  EXPECT_THAT(this_machine(machine, 1).substep_seconds, DoubleEq(2));
  EXPECT_THAT(step_seconds_here(machine, 12, 3), DoubleEq(12 * 2 + 1));
}

// Of every small step, against threads that take cores second by second.
TEST(ThisMachine, GivesCoresToWhoIsFree) {
  for (std::int64_t cores = 1; cores <= 9; ++cores) {
    for (std::int64_t minibatches = 1; minibatches <= 30; ++minibatches) {
      for (int threads = 1; threads <= 5; ++threads) {
        const Calibration measured{.substep_seconds = 1, .threads = threads};
        std::vector<std::int64_t> left(static_cast<std::size_t>(threads), 0);
        std::int64_t next = 0;
        std::int64_t seconds = 0;
        while (true) {
          for (std::int64_t& thread : left) {
            if (thread > 0 || next == cores) continue;
            thread = share_of_core({}, minibatches, CoreRank{next++}, cores, Assignment::contiguous)
                         .count;
          }
          if (*std::max_element(left.begin(), left.end()) == 0) break;
          for (std::int64_t& thread : left) thread = std::max<std::int64_t>(0, thread - 1);
          ++seconds;
        }
        EXPECT_THAT(
            step_seconds_here({.alone = measured, .together = measured}, minibatches, cores),
            DoubleEq(static_cast<double>(seconds)))
            << minibatches << " minibatches, " << cores << " cores, " << threads << " threads";
      }
    }
  }
}

TEST(ThisMachine, TakesTheSecondsOfAClusterWithACoreForEachThread) {
  const MachineCalibration machine = five_threads();
  EXPECT_THAT(step_seconds_here(machine, 12, 1), DoubleEq(12 * 2 + 1));
  EXPECT_THAT(step_seconds_here(machine, 12, 3), DoubleEq(4 * 2.5 + 3));
  EXPECT_THAT(step_seconds_here(machine, 2, 100), DoubleEq(2.25 + 2)) << "two are busy";
  EXPECT_THAT(step_seconds_here(machine, 640, 64), DoubleEq(13 * 10 * 3 + 5));
  // Wherever cores are as many as threads, the virtual clock's own words.
  EXPECT_EQ(step_seconds_here(machine, 23, 5),
            StepTimes(this_machine(machine, 5)).step_seconds(23, 5));
}

// All threads busy: a step takes 7 s, a core 0.5 s besides its minibatches, a minibatch 2 s.
TEST(ThisMachine, TakesTheSecondsOfManyCoresFromWhatManyCoresTook) {
  const auto measured = [](std::int64_t cores, std::int64_t substeps) {
    const auto minibatches = static_cast<double>(cores * substeps);
    const double seconds = 7 + 0.5 * static_cast<double>(cores) + 2 * minibatches;
    // However it is shared out between the two.
    return Calibration{.substep_seconds = (seconds - 1) / minibatches,
                       .update_seconds = 1,
                       .threads = 5,
                       .cores_per_thread = cores,
                       .substeps = substeps,
                       .steps = 5};
  };
  MachineCalibration machine{.alone = {.substep_seconds = 2, .update_seconds = 1},
                             .together = measured(1, 4),
                             .many_cores = measured(16, 1),
                             .many_full_cores = measured(16, 4)};
  EXPECT_THAT(step_seconds_here(machine, 5, 5), DoubleEq(7 + 0.5 + 2));
  EXPECT_THAT(step_seconds_here(machine, 640, 64), DoubleEq(7 + 13 * 0.5 + 130 * 2));
  EXPECT_THAT(step_seconds_here(machine, 23, 6), DoubleEq(7 + 2 * 0.5 + 7 * 2))
      << "the sixth core's three minibatches come behind four";
  EXPECT_THAT(step_seconds_here(machine, 12, 1), DoubleEq(12 * 2 + 1)) << "alone";
  machine.many_cores.steps = 0;
  EXPECT_THAT(step_seconds_here(machine, 20, 5), DoubleEq(7 + 0.5 + 4 * 2)) << "as it was measured";
}

// Two threads: a step takes 7 s, a pass of up to 4 minibatches 0.5 s besides them, a minibatch 2 s.
TEST(ThisMachine, CountsThePassesOfACore) {
  const auto measured = [](std::int64_t cores, std::int64_t substeps, std::int64_t passes) {
    const auto minibatches = static_cast<double>(cores * substeps);
    const double seconds = 7 + 0.5 * static_cast<double>(passes) + 2 * minibatches;
    return Calibration{.substep_seconds = seconds / minibatches,
                       .minibatches_at_once = 4,
                       .threads = 2,
                       .cores_per_thread = cores,
                       .substeps = substeps,
                       .steps = 5};
  };
  const MachineCalibration machine{.together = measured(1, 4, 1),
                                   .many_cores = measured(16, 1, 16),
                                   .many_full_cores = measured(16, 4, 16)};
  // Of three minibatches, two are a subtree.
  EXPECT_THAT(step_seconds_here(machine, 6, 2), DoubleEq(7 + 2 * 0.5 + 3 * 2));
  // Of eight, each four are computed in a pass.
  EXPECT_THAT(step_seconds_here(machine, 16, 2), DoubleEq(7 + 2 * 0.5 + 8 * 2));
  EXPECT_THAT(step_seconds_here(machine, 8, 4), DoubleEq(7 + 2 * 0.5 + 4 * 2));
}

// One thread computes up to 8 of 32 minibatches that fit into a pass in a task of several cores.
TEST(ThisMachine, CountsThePassesThatSpanCores) {
  const auto measured = [](std::int64_t cores, std::int64_t substeps, std::int64_t passes) {
    const auto minibatches = static_cast<double>(cores * substeps);
    const double seconds = 7 + 0.5 * static_cast<double>(passes) + 2 * minibatches;
    return Calibration{.substep_seconds = seconds / minibatches,
                       .minibatches_at_once = 32,
                       .cores_per_thread = cores,
                       .substeps = substeps,
                       .steps = 5};
  };
  const MachineCalibration machine{.together = measured(1, 4, 1),
                                   .many_cores = measured(16, 1, 2),
                                   .many_full_cores = measured(16, 4, 8)};
  EXPECT_THAT(step_seconds_here(machine, 8, 8), DoubleNear(7 + 0.5 + 8 * 2, 1e-9));
  EXPECT_THAT(step_seconds_here(machine, 9, 9), DoubleNear(7 + 2 * 0.5 + 9 * 2, 1e-9));
  // Both cores together would be more than 8: their passes are 0 to 3, 4 to 5, 6 to 7, 8 to 11.
  EXPECT_THAT(step_seconds_here(machine, 12, 2), DoubleNear(7 + 4 * 0.5 + 12 * 2, 1e-9));
  // All passes of these three are equally long, so that they are minibatches, too.
  const MachineCalibration line{.together = measured(1, 8, 1),
                                .many_cores = measured(16, 1, 2),
                                .many_full_cores = measured(16, 8, 16)};
  EXPECT_THAT(step_seconds_here(line, 32, 32), DoubleNear(7 + 4 * 0.5 + 32 * 2, 1e-9));
}

TEST(ThisMachine, IsCalibratedAloneTogetherAndWithManyCores) {
  const RunConfiguration configuration{.model = "quadratic:dim=5,samples=512"};
  const auto workload = dense_workload(configuration);
  const MachineCalibration two =
      calibrate_machine(*workload, configuration, {.threads = 2, .substeps = 3, .seconds = 1e-3});
  EXPECT_EQ(two.threads(), 2);
  EXPECT_EQ(two.together.substeps, 3);
  EXPECT_EQ(two.alone.threads, 1);
  EXPECT_GT(two.alone.substep_seconds, 0);
  EXPECT_EQ(two.many_cores.cores_per_thread, 16);
  EXPECT_EQ(two.many_cores.substeps, 1);
  EXPECT_EQ(two.many_full_cores.cores_per_thread, 16);
  EXPECT_EQ(two.many_full_cores.substeps, 3);
  const MachineCalibration one = calibrate_machine(*workload, configuration, {.seconds = 1e-3});
  EXPECT_EQ(one.threads(), 1);
  EXPECT_EQ(one.alone.substep_seconds, one.together.substep_seconds) << "measured once";
}

}  // namespace
}  // namespace rubato
