#include <gmock/gmock.h>

#include "runs/config/readings.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// People count steps from 1, cores and substeps from 0.
TEST(FaultOptions, CountStepsFromOne) {
  const std::vector<Fault> faults = parse_faults("core=3,step=100+core=0,step=1,substep=2");
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].core, CoreRank{3});
  EXPECT_EQ(faults[0].step, StepIndex{99});
  EXPECT_EQ(faults[0].substep, 0);
  EXPECT_EQ(faults[1].core, CoreRank{0});
  EXPECT_EQ(faults[1].step, StepIndex{0});
  EXPECT_EQ(faults[1].substep, 2);
  EXPECT_THAT(error_of([] { return parse_faults("core=3,step=0"); }),
              HasSubstr("step: '0' is out of range; accepted: a whole number from 1"));
  EXPECT_THAT(error_of([] { return parse_faults("core=3"); }), HasSubstr("there is no 'step'"));
}

}  // namespace
}  // namespace rubato
