#include <gmock/gmock.h>

#include "runs/config/values/trace_source.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato {
namespace {

// Three steps of 32, 32 and 64 samples are 128 together, 42 2/3 in the mean.
TEST(DryRun, HasMeansThatAreNoWholeNumbers) {
  RunConfiguration run;
  run.model = "quadratic:dim=4,samples=128";
  run.clock = Clock::modelled;
  run.cluster = "substep=1";
  const Trace trace({{32, 1}, {32, 1}, {64, 2}}, TraceEnd::stop, "three steps");
  const SimulatedTraining simulated = simulate_training(run, trace, 128);
  EXPECT_EQ(simulated.result.steps, 3);
  EXPECT_EQ(simulated.result.samples, 128);
  EXPECT_DOUBLE_EQ(simulated.mean_batch, 128.0 / 3);
  EXPECT_EQ(simulated.fewest_cores, 1);
  EXPECT_EQ(simulated.most_cores, 2);
}

TEST(DryRun, SaysWhyItEndedBeforeItsEpochs) {
  using Cause = SourceEnd::Cause;
  EXPECT_EQ(ended_by({}), "");
  EXPECT_EQ(ended_by({.reached = "9 samples reached"}), "9 samples reached");
  EXPECT_EQ(ended_by({.ended = Cause::budget, .reached = "1 hours reached"}), "1 hours reached");
  EXPECT_EQ(ended_by({.ended = Cause::out_of_devices}), "out of devices");
  EXPECT_EQ(ended_by({.ended = Cause::exhausted}), "trace ended");
}

}  // namespace
}  // namespace rubato
