#include <gmock/gmock.h>

#include "base/core/text/text.hpp"

namespace rubato {
namespace {

using testing::ElementsAre;

TEST(SplitAt, CutsAtEveryMark) {
  EXPECT_THAT(split_at("ring,tree", ','), ElementsAre("ring", "tree"));
  EXPECT_THAT(split_at("flip+shift:pixels=1,by=2", '+'),
              ElementsAre("flip", "shift:pixels=1,by=2"));
}

TEST(SplitAt, KeepsEmptyPieces) {
  EXPECT_THAT(split_at("", ','), ElementsAre(""));
  EXPECT_THAT(split_at(",a,,b,", ','), ElementsAre("", "a", "", "b", ""));
}

}  // namespace
}  // namespace rubato
