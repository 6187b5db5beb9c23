#include <cmath>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/faults.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(FaultModel, KillsAsOftenAsItsRateSays) {
  const FaultModel model({.rate = 0.1, .seed = 5});
  int deaths = 0;
  std::vector<int> substeps(4);
  for (std::int64_t step = 0; step < 1000; ++step) {
    for (CoreRank core; core.value() < 10; ++core) {
      if (const auto death = model.death(StepIndex{step}, 0, core, 4)) {
        ++deaths;
        ++substeps.at(static_cast<std::size_t>(*death));
      }
    }
  }
  // Five standard deviations of the binomial distribution.
  EXPECT_NEAR(deaths, 1000, 150);
  for (const int count : substeps) EXPECT_NEAR(count, 250, 75);
}

// Where each of the first cores dies, in order.
std::vector<std::int64_t> deaths_with_seed(std::uint64_t seed) {
  const FaultModel model({.rate = 0.5, .seed = seed});
  std::vector<std::int64_t> deaths;
  for (CoreRank core; core.value() < 100; ++core) {
    deaths.push_back(model.death(StepIndex{0}, 0, core, 8).value_or(-1));
  }
  return deaths;
}

TEST(FaultModel, DrawsBySeed) {
  EXPECT_EQ(deaths_with_seed(1), deaths_with_seed(1));
  EXPECT_NE(deaths_with_seed(1), deaths_with_seed(2));
  EXPECT_NE(deaths_with_seed(0), deaths_with_seed(std::uint64_t{1} << 40));
}

TEST(FaultModel, RejectsWhatIsOutOfRange) {
  for (const double rate : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THAT(error_of([&] { FaultModel({.rate = rate}); }), HasSubstr("accepted"));
  }
  EXPECT_THAT(error_of([] {
                FaultModel({.planned = {{CoreRank{-1}, StepIndex{0}, 0}}});
              }),
              HasSubstr("count from 0"));
}

TEST(FaultModel, PlannedFaultsHappenInTheFirstAttemptOnly) {
  const FaultModel model({.planned = {{CoreRank{2}, StepIndex{5}, 3}}});
  EXPECT_TRUE(model.any());
  EXPECT_FALSE(FaultModel({}).any());
  EXPECT_EQ(model.death(StepIndex{5}, 0, CoreRank{2}, 8), 3);
  EXPECT_EQ(model.death(StepIndex{5}, 0, CoreRank{2}, 2), 1);
  EXPECT_EQ(model.death(StepIndex{5}, 1, CoreRank{2}, 8), std::nullopt);
  EXPECT_EQ(model.death(StepIndex{5}, 0, CoreRank{1}, 8), std::nullopt);
  EXPECT_EQ(model.death(StepIndex{4}, 0, CoreRank{2}, 8), std::nullopt);
}

}  // namespace
}  // namespace rubato
