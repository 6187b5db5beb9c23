#include "numbers/collective/combining_tree.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace rubato {
namespace {

// The order of the sum of so many leaves, from `first` on, by the definition: pairs of neighbours,
// level by level.
std::string expected_text(std::int64_t leaves, std::int64_t first = 0) {
  std::vector<std::string> row;
  for (std::int64_t i = 0; i < leaves; ++i) row.push_back(std::to_string(first + i));
  while (row.size() > 1) {
    std::vector<std::string> above;
    for (std::size_t i = 0; i + 1 < row.size(); i += 2) {
      above.push_back("(" + row[i] + "+" + row[i + 1] + ")");
    }
    if (row.size() % 2 == 1) above.push_back(row.back());
    row = above;
  }
  return row.front();
}

// Sums that write down the order in which they were made. Plain memory: ThreadSanitizer sees it
// when two threads are at it.
class Leaves {
 public:
  explicit Leaves(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) sums_.push_back(std::to_string(i));
  }
  std::string& operator[](SumId id) { return sums_[static_cast<std::size_t>(id)]; }

  SumId merge(SumId left, SumId right) {
    (*this)[left] = "(" + (*this)[left] + "+" + (*this)[right] + ")";
    return left;
  }

 private:
  std::vector<std::string> sums_;
};

// Offers the leaves [begin, end); the step's sum if this completed it.
template <class Tree>
std::string offer_run(const SummationTree& shape, Tree& tree, Leaves& leaves, std::int64_t begin,
                      std::int64_t end) {
  const auto merge = [&](SumId left, SumId right) { return leaves.merge(left, right); };
  LocalRun run(shape, begin, end);
  std::string root;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto complete = run.offer(SumId{static_cast<std::uint32_t>(i)}, merge);
    if (!complete) continue;
    if (const auto sum = climb(shape, tree, *complete, merge)) root = leaves[*sum];
  }
  return root;
}

TEST(CombiningTree, KeepsTheOrderForEveryCutIntoTwoRunsInEitherOrderOfArrival) {
  for (std::int64_t count = 1; count <= 17; ++count) {
    const SummationTree shape(count);
    CombiningTree<> tree(17);
    for (std::int64_t cut = 0; cut < count; ++cut) {
      for (const bool left_first : {true, false}) {
        Leaves leaves(count);
        tree.begin_step();
        std::string root;
        const auto left = [&] {
          if (cut > 0) root += offer_run(shape, tree, leaves, 0, cut);
        };
        const auto right = [&] { root += offer_run(shape, tree, leaves, cut, count); };
        if (left_first) {
          left();
          right();
        } else {
          right();
          left();
        }
        EXPECT_EQ(root, expected_text(count)) << count << " leaves cut at " << cut;
      }
    }
  }
}

TEST(LocalRun, HoldsAtMostItsLogarithmOfSums) {
  constexpr std::int64_t kLeaves = 1000;
  const SummationTree shape(kLeaves);
  LocalRun run(shape, 0, kLeaves);
  std::int64_t alive = 0;
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < kLeaves; ++i) {
    most = std::max(most, ++alive);
    const auto complete = run.offer(SumId{static_cast<std::uint32_t>(i)}, [&](SumId left, SumId) {
      --alive;
      return left;
    });
    EXPECT_EQ(complete.has_value(), i == kLeaves - 1);
  }
  EXPECT_EQ(alive, 1);
  EXPECT_LE(most, shape.height() + 1);
}

// Whatever is offered at once, the sum has the order of its tree.
TEST(LocalRun, TakesNodesOfAnySizeInTheSameOrder) {
  for (std::int64_t count = 1; count <= 40; ++count) {
    const SummationTree shape(count);
    for (const std::int64_t most : {1, 2, 3, 7, 8, 64}) {
      for (std::int64_t cut = 0; cut < count; ++cut) {
        CombiningTree<> tree(40);
        tree.begin_step();
        Leaves leaves(count);
        std::string root;
        for (const auto& [begin, end] : {std::pair(cut, count), std::pair(std::int64_t{0}, cut)}) {
          if (begin == end) continue;
          const auto merge = [&](SumId left, SumId right) { return leaves.merge(left, right); };
          LocalRun run(shape, begin, end);
          std::int64_t covered = begin;
          while (const auto node = run.next(most)) {
            const auto [first, last] = shape.leaves_below(*node);
            ASSERT_EQ(first, covered);
            ASSERT_LE(last, end);
            ASSERT_LE(last - first, most);
            // Of what could come together nothing is left apart.
            const auto [above, behind] = shape.leaves_below(node->parent());
            ASSERT_TRUE(shape.is_root(*node) || above < first || behind > end ||
                        behind - above > most);
            covered = last;
            const SumId sum{static_cast<std::uint32_t>(first)};
            // As a tree of its own has it.
            leaves[sum] = expected_text(last - first, first);
            const auto complete = run.offer(*node, sum, merge);
            if (!complete) continue;
            if (const auto all = climb(shape, tree, *complete, merge)) root = leaves[*all];
          }
          EXPECT_EQ(covered, end);
        }
        EXPECT_EQ(root, expected_text(count)) << count << " leaves cut at " << cut;
      }
    }
  }
}

// The nodes that a run completes are the largest that lie within it: together they are the run.
TEST(LocalRun, LeavesTheNodesThatCoverTheRun) {
  for (std::int64_t count = 1; count <= 40; ++count) {
    const SummationTree shape(count);
    for (std::int64_t begin = 0; begin < count; ++begin) {
      for (std::int64_t end = begin + 1; end <= count; ++end) {
        LocalRun run(shape, begin, end);
        std::int64_t covered = begin;
        for (std::int64_t i = begin; i < end; ++i) {
          const auto complete = run.offer(SumId{0}, [](SumId left, SumId) { return left; });
          if (!complete) continue;
          const auto [first, last] = shape.leaves_below(complete->node);
          EXPECT_EQ(first, covered);
          EXPECT_TRUE(shape.is_root(complete->node) ||
                      !shape.within(complete->node.parent(), begin, end));
          covered = last;
        }
        EXPECT_EQ(covered, end) << "leaves " << begin << " to " << end << " of " << count;
      }
    }
  }
}

TEST(CombiningTree, ForgetsAStepThatWasGivenUp) {
  const SummationTree shape(2);
  CombiningTree<> tree(2);
  tree.begin_step();
  Leaves given_up(2);
  EXPECT_EQ(offer_run(shape, tree, given_up, 0, 1), "");
  tree.begin_step();
  Leaves leaves(2);
  EXPECT_EQ(offer_run(shape, tree, leaves, 1, 2), "");
  EXPECT_EQ(offer_run(shape, tree, leaves, 0, 1), "(0+1)");
}

// With a count of 8 bits it begins again after 255 steps: what a step left behind is not taken for
// that of a step of the same number, nor a node that was never visited for one that was.
TEST(CombiningTree, ForgetsItsStepsWhenTheirCountBeginsAgain) {
  const SummationTree shape(4);
  for (int steps_between = 250; steps_between < 260; ++steps_between) {
    CombiningTree<std::atomic, std::uint8_t> tree(4);
    tree.begin_step();
    Leaves given_up(4);
    EXPECT_EQ(offer_run(shape, tree, given_up, 0, 1), "");
    for (int i = 0; i < steps_between; ++i) tree.begin_step();
    Leaves leaves(4);
    EXPECT_EQ(offer_run(shape, tree, leaves, 1, 2), "") << steps_between;
    EXPECT_EQ(offer_run(shape, tree, leaves, 2, 4), "") << steps_between;
    EXPECT_EQ(offer_run(shape, tree, leaves, 0, 1), "((0+1)+(2+3))") << steps_between;
  }
}

}  // namespace
}  // namespace rubato
