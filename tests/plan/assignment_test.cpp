#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/steps/step_plan.hpp>

namespace rubato {
namespace {

std::vector<std::int64_t> share(std::int64_t minibatches, std::int64_t core, std::int64_t cores,
                                Assignment assignment) {
  const MinibatchRun run =
      share_of_core(MinibatchIndex{100}, minibatches, CoreRank{core}, cores, assignment);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < run.count; ++i) indices.push_back(run[i].value());
  return indices;
}

using Indices = std::vector<std::int64_t>;

TEST(Assignment, ContiguousGivesRunsLongerOnesFirst) {
  EXPECT_EQ(share(8, 0, 3, Assignment::contiguous), (Indices{100, 101, 102}));
  EXPECT_EQ(share(8, 1, 3, Assignment::contiguous), (Indices{103, 104, 105}));
  EXPECT_EQ(share(8, 2, 3, Assignment::contiguous), (Indices{106, 107}));
}

TEST(Assignment, StridedDealsThemOut) {
  EXPECT_EQ(share(8, 0, 3, Assignment::strided), (Indices{100, 103, 106}));
  EXPECT_EQ(share(8, 1, 3, Assignment::strided), (Indices{101, 104, 107}));
  EXPECT_EQ(share(8, 2, 3, Assignment::strided), (Indices{102, 105}));
}

TEST(Assignment, LeavesTheLastCoresIdle) {
  for (const auto& [assignment, name] : kAssignments) {
    EXPECT_EQ(share(2, 1, 4, assignment), (Indices{101})) << name;
    EXPECT_EQ(share(2, 2, 4, assignment), Indices{}) << name;
    EXPECT_EQ(share(2, 3, 4, assignment), Indices{}) << name;
  }
}

// Every property the header promises, for one step.
void expect_partition(std::int64_t minibatches, std::int64_t cores, Assignment assignment) {
  Indices all;
  std::int64_t fewest = minibatches;
  std::int64_t most = 0;
  for (std::int64_t core = 0; core < cores; ++core) {
    const Indices own = share(minibatches, core, cores, assignment);
    const auto count = static_cast<std::int64_t>(own.size());
    EXPECT_EQ(count > 0, core < busy_cores(minibatches, cores)) << "core " << core;
    EXPECT_LE(count, fewest) << "core " << core;
    fewest = std::min(fewest, count);
    most = std::max(most, count);
    all.insert(all.end(), own.begin(), own.end());
  }
  EXPECT_LE(most - fewest, 1);
  // Runs in order need no sorting.
  if (assignment != Assignment::contiguous) std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), static_cast<std::size_t>(minibatches));
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i], 100 + static_cast<std::int64_t>(i));
}

TEST(Assignment, SharesAreDisjointCoverAndDifferByAtMostOne) {
  for (const auto& [assignment, name] : kAssignments) {
    for (std::int64_t minibatches = 1; minibatches <= 40; ++minibatches) {
      for (const std::int64_t cores : {1, 2, 3, 5, 8, 13, 24, 39, 40, 41, 1000}) {
        SCOPED_TRACE(testing::Message() << name << ", " << minibatches << " on " << cores);
        expect_partition(minibatches, cores, assignment);
      }
    }
  }
}

TEST(Assignment, HasThePlaceOfEveryMinibatch) {
  for (const auto& [assignment, name] : kAssignments) {
    for (std::int64_t minibatches = 1; minibatches <= 40; ++minibatches) {
      for (const std::int64_t cores : {1, 2, 3, 5, 8, 13, 24, 39, 40, 41, 1000}) {
        SCOPED_TRACE(testing::Message() << name << ", " << minibatches << " on " << cores);
        const StepPlan step{.index = {},
                            .cores = cores,
                            .first_minibatch = MinibatchIndex{100},
                            .minibatches = minibatches};
        for (CoreRank core; core.value() < cores; ++core) {
          const MinibatchRun run = step.share_of(core, assignment);
          for (std::int64_t substep = 0; substep < run.count; ++substep) {
            EXPECT_EQ(step.place_of(run[substep], assignment), (MinibatchPlace{core, substep}));
          }
        }
      }
    }
  }
}

TEST(AssignmentDeathTest, RejectsWhatIsNoCoreOrNoStep) {
  const auto call = [](std::int64_t minibatches, std::int64_t core) {
    static_cast<void>(
        share_of_core(MinibatchIndex{0}, minibatches, CoreRank{core}, 4, Assignment::contiguous));
  };
  EXPECT_DEATH(call(8, 4), "one of the step's");
  EXPECT_DEATH(call(8, -1), "one of the step's");
  EXPECT_DEATH(call(0, 0), "at least one minibatch");
  EXPECT_DEATH(static_cast<void>(busy_cores(8, 0)), "minibatches and cores");
}

}  // namespace
}  // namespace rubato
