// The map of cores and steps.

#include <cstdint>
#include <limits>

#include <gmock/gmock.h>

#include "runs/page/buckets.hpp"
#include "support/matchers.hpp"

namespace rubato::page {
namespace {

TEST(SubstepMap, HasARowForEachCoreAndAColumnForEachStep) {
  SubstepMap map(4, 4);
  map.add({2, 1});
  map.add({1});
  EXPECT_TRUE(map.has_differences());
  EXPECT_THAT(map.means(), ElementsAre(ElementsAre(Optional(2), Optional(1)),
                                       ElementsAre(Optional(1), std::nullopt)));
}

TEST(SubstepMap, DiffersWhereCoresComeOrGo) {
  SubstepMap fewer(4, 4);
  fewer.add({1, 1});
  fewer.add({1});
  EXPECT_TRUE(fewer.has_differences());
  SubstepMap more(4, 4);
  more.add({1});
  more.add({1, 1});
  EXPECT_TRUE(more.has_differences());
}

TEST(SubstepMap, HasNothingToShowWhereAllAreTheSame) {
  SubstepMap map(4, 4);
  map.add({1, 1});
  map.add({1, 1});
  EXPECT_FALSE(map.has_differences());
}

TEST(SubstepMap, IsThinnedToMeans) {
  SubstepMap map(2, 2);
  // Three cores share two rows, five steps two columns.
  for (int step = 0; step < 5; ++step) map.add({step, step, 10});
  EXPECT_EQ(map.steps_of_column(), 4);
  EXPECT_EQ(map.cores_of_row(), 2U);
  EXPECT_THAT(map.means(), ElementsAre(ElementsAre(Optional(1.5), Optional(4)),
                                       ElementsAre(Optional(10), Optional(10))));
}

// Idle cores count as cores without a substep, and take no memory.
TEST(SubstepMap, KnowsIdleCores) {
  SubstepMap map(4, 4);
  map.add({2, 1}, 4);
  map.add({1, 1, 1, 1}, 4);
  EXPECT_TRUE(map.has_differences());
  EXPECT_THAT(
      map.means(),
      ElementsAre(ElementsAre(Optional(2), Optional(1)), ElementsAre(Optional(1), Optional(1)),
                  ElementsAre(Optional(0), Optional(1)), ElementsAre(Optional(0), Optional(1))));
  SubstepMap many(2, 2);
  for (int step = 0; step < 1000; ++step) many.add({4}, 1'000'000);
  EXPECT_EQ(many.cores(), 1'000'000U);
  EXPECT_THAT(many.means(), ElementsAre(ElementsAre(Optional(8e-6), Optional(8e-6)),
                                        ElementsAre(Optional(0), Optional(0))));
  // A damaged file may have any number.
  SubstepMap damaged(2, 2);
  damaged.add({1}, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(damaged.cores(), 1U << 20U);
  SubstepMap busy(2, 2);
  busy.add({1, 1}, 3);
  EXPECT_TRUE(busy.has_differences()) << "the third core is idle";
}

TEST(SubstepMap, OfNothingIsEmpty) {
  EXPECT_TRUE(SubstepMap(2, 2).means().empty());
}

}  // namespace
}  // namespace rubato::page
