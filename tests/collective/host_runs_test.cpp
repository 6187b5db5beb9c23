#include "numbers/collective/host_runs.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato {
namespace {

std::vector<std::int64_t> borders(std::int64_t leaves, const std::vector<double>& weights) {
  return host_borders(leaves, weights);
}

TEST(HostBorders, CutLeavesIntoWholeSubtreesByWeight) {
  EXPECT_THAT(borders(10, {1}), ElementsAre(0, 10));
  EXPECT_THAT(borders(64, {1, 1}), ElementsAre(0, 32, 64));
  EXPECT_THAT(borders(64, {3, 1}), ElementsAre(0, 48, 64));
  // Multiples of 8, of which there are 12 at least.
  EXPECT_THAT(borders(128, {1, 1, 1}), ElementsAre(0, 40, 88, 128));
  // Fewer leaves than four for each: single ones.
  EXPECT_THAT(borders(7, {1, 1}), ElementsAre(0, 4, 7));
  EXPECT_THAT(borders(2, {1, 1, 1, 1}), ElementsAre(0, 1, 1, 2, 2));
  EXPECT_THAT(borders(1, {1, 1000}), ElementsAre(0, 0, 1));
}

TEST(HostBorders, AscendForAllSizes) {
  for (std::int64_t leaves = 1; leaves < 300; ++leaves) {
    for (const std::vector<double>& weights :
         {std::vector<double>{1, 1, 1}, {1e-9, 1, 5, 0.3}, {7, 1}, std::vector<double>(40, 1.0)}) {
      const std::vector<std::int64_t> all = borders(leaves, weights);
      ASSERT_EQ(all.size(), weights.size() + 1);
      EXPECT_EQ(all.front(), 0);
      EXPECT_EQ(all.back(), leaves);
      EXPECT_TRUE(std::is_sorted(all.begin(), all.end())) << leaves;
    }
  }
}

TEST(HostBorders, GiveNothingToAWeightOfZero) {
  EXPECT_THAT(borders(64, {1, 0, 1}), ElementsAre(0, 32, 32, 64));
  EXPECT_THAT(borders(64, {0, 0, 1}), ElementsAre(0, 0, 0, 64));
  // Of which eight are no multiple: the rest is that of the last one that has any.
  EXPECT_THAT(borders(129, {1, 1, 0, 0}), ElementsAre(0, 64, 129, 129, 129));
  EXPECT_THAT(borders(1, {0, 1, 1, 0}), ElementsAre(0, 0, 1, 1, 1));
  // Cut as finely as for those that have some.
  std::vector<double> many(100, 0.0);
  many[0] = many[1] = 1;
  EXPECT_EQ(borders(64, many)[1], 32);
  EXPECT_EQ(borders(72, many)[1], borders(72, {1, 1})[1]);
}

void expect_shares(const StepSize& step, const std::vector<double>& weights,
                   const std::vector<std::int64_t>& leaves,
                   const std::vector<std::int64_t>& cores) {
  const HostShares shares = shares_of_hosts(step, weights);
  EXPECT_EQ(shares.leaf_borders, leaves);
  EXPECT_EQ(shares.core_borders, cores);
}

TEST(SharesOfHosts, AreByWeightWhereTheStepNamesNoHosts) {
  expect_shares({.leaves = 64, .cores = 8}, {3, 1}, {0, 48, 64}, {0, 6, 8});
  const HostShares few = shares_of_hosts({.leaves = 64, .cores = 1}, std::vector<double>{1, 1});
  EXPECT_EQ(few.cores_of(0) + few.cores_of(1), 2) << "one at least";
}

TEST(SharesOfHosts, AreByTheirCoresWhereTheStepNamesThem) {
  const std::vector<std::int64_t> cores{4, 2, 2};
  const StepSize step{.leaves = 64, .cores = 8, .host_cores = cores};
  expect_shares(step, {1, 1, 1}, {0, 32, 48, 64}, {0, 4, 6, 8});
  // Of the second host, each is worth two; in multiples of four.
  expect_shares(step, {1, 2, 1}, {0, 24, 52, 64}, {0, 4, 6, 8});
  // A host that is not named has nothing to do, with a core to do it on.
  expect_shares(step, {1, 1, 1, 1}, {0, 32, 48, 64, 64}, {0, 4, 6, 8, 8});
  EXPECT_EQ(shares_of_hosts(step, std::vector<double>(4, 1.0)).cores_of(3), 1);
  // Two hosts are not those of the trace: they share out what there is.
  expect_shares(step, {3, 1}, {0, 48, 64}, {0, 6, 8});
}

TEST(SharesOfHosts, MayLeaveAHostOut) {
  const std::vector<std::int64_t> cores{0, 3};
  expect_shares({.leaves = 7, .cores = 3, .host_cores = cores}, {5, 1}, {0, 0, 7}, {0, 0, 3});
}

TEST(RootsWithin, AreMaximalAndCoverTheRun) {
  for (std::int64_t leaves = 1; leaves <= 40; ++leaves) {
    const SummationTree tree(leaves);
    for (std::int64_t begin = 0; begin <= leaves; ++begin) {
      for (std::int64_t end = begin; end <= leaves; ++end) {
        std::int64_t next = begin;
        for (const TreeNode root : roots_within(tree, begin, end)) {
          const auto below = tree.leaves_below(root);
          EXPECT_EQ(below.first, next);
          next = below.second;
          EXPECT_TRUE(tree.within(root, begin, end));
          EXPECT_TRUE(tree.is_root(root) || !tree.within(root.parent(), begin, end));
        }
        EXPECT_EQ(next, end);
      }
    }
  }
}

// Terms instead of numbers show the order: "((0+1)+(2+3))+(4+5)".
std::string term_of(const SummationTree& tree, TreeNode node) {
  if (node.level == 0) return std::to_string(node.index);
  if (!tree.contains(node.right())) return term_of(tree, node.left());
  return "(" + term_of(tree, node.left()) + "+" + term_of(tree, node.right()) + ")";
}

TEST(SumRoots, HaveTheOrderOfTheTree) {
  for (std::int64_t leaves = 1; leaves <= 40; ++leaves) {
    const SummationTree tree(leaves);
    for (std::int64_t border = 0; border <= leaves; ++border) {
      std::vector<TreeNode> roots = roots_within(tree, 0, border);
      for (const TreeNode root : roots_within(tree, border, leaves)) roots.push_back(root);
      std::vector<std::string> terms;
      terms.reserve(roots.size());
      for (const TreeNode root : roots) terms.push_back(term_of(tree, root));
      sum_roots(tree, roots, [&](std::size_t left, std::size_t right) {
        terms[left] = "(" + terms[left] + "+" + terms[right] + ")";
      });
      EXPECT_EQ(terms.front(), term_of(tree, {tree.height(), 0})) << leaves << " at " << border;
    }
  }
}

}  // namespace
}  // namespace rubato
