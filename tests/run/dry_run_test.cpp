#include "run/dry_run.hpp"

#include <gmock/gmock.h>

#include "config/trace_source.hpp"

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

}  // namespace
}  // namespace rubato
