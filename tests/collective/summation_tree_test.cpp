#include "numbers/collective/summation_tree.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(SummationTree, HasTheShapeThatItsDrawingShows) {
  constexpr SummationTree kTree(6);
  EXPECT_EQ(kTree.height(), 3);
  EXPECT_EQ(kTree.width(0), 6);
  EXPECT_EQ(kTree.width(1), 3);
  EXPECT_EQ(kTree.width(2), 2);
  EXPECT_EQ(kTree.width(3), 1);
  EXPECT_FALSE(kTree.contains(TreeNode{1, 2}.sibling()));
  EXPECT_EQ((TreeNode{0, 4}.parent()), (TreeNode{1, 2}));
}

TEST(SummationTree, OfOneLeafIsItsRoot) {
  constexpr SummationTree kTree(1);
  EXPECT_EQ(kTree.height(), 0);
  EXPECT_TRUE(kTree.is_root(TreeNode{0, 0}));
}

TEST(SummationTree, EveryWidthIsHalfOfTheLevelBelowRoundedUp) {
  for (std::int64_t leaves = 1; leaves <= 300; ++leaves) {
    const SummationTree tree(leaves);
    for (int level = 1; level <= tree.height(); ++level) {
      EXPECT_EQ(tree.width(level), (tree.width(level - 1) + 1) / 2) << leaves << " leaves";
    }
    EXPECT_EQ(tree.width(tree.height()), 1) << leaves << " leaves";
    if (leaves == 1) continue;
    EXPECT_GT(tree.width(tree.height() - 1), 1) << leaves << " leaves";
  }
}

TEST(SummationTree, ManyLeavesAreNoTrouble) {
  constexpr SummationTree kTree(1'000'000);
  EXPECT_EQ(kTree.height(), 20);
  EXPECT_EQ(kTree.width(20), 1);
}

TEST(SummationTree, WithinAgreesWithTheLeavesBelow) {
  for (std::int64_t leaves = 1; leaves <= 20; ++leaves) {
    const SummationTree tree(leaves);
    // below[level][node]: the leaves below a node, built from the children.
    std::vector<std::vector<std::int64_t>> below;
    for (std::int64_t i = 0; i < leaves; ++i) below.push_back({i});
    for (int level = 0; level <= tree.height(); ++level) {
      for (std::int64_t begin = 0; begin < leaves; ++begin) {
        for (std::int64_t end = begin + 1; end <= leaves; ++end) {
          for (std::int64_t i = 0; i < tree.width(level); ++i) {
            const auto& leaf = below[static_cast<std::size_t>(i)];
            EXPECT_EQ(tree.within({level, i}, begin, end),
                      begin <= leaf.front() && leaf.back() < end)
                << leaves << " leaves, node (" << level << ", " << i << "), run " << begin << ".."
                << end;
          }
        }
      }
      std::vector<std::vector<std::int64_t>> above;
      for (std::size_t i = 0; i < below.size(); ++i) {
        if (i % 2 == 0) {
          above.push_back(below[i]);
        } else {
          above.back().insert(above.back().end(), below[i].begin(), below[i].end());
        }
      }
      below = above;
    }
  }
}

}  // namespace
}  // namespace rubato
