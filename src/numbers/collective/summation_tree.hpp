#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace rubato {

/// A node of a summation tree: `index` counts from the left within its level.
struct TreeNode {
  int level = 0;
  std::int64_t index = 0;

  [[nodiscard]] constexpr TreeNode parent() const { return {level + 1, index / 2}; }
  /// The children, on the level below; the right one may not exist. Requires level >= 1.
  [[nodiscard]] constexpr TreeNode left() const { return {level - 1, 2 * index}; }
  [[nodiscard]] constexpr TreeNode right() const { return {level - 1, 2 * index + 1}; }
  /// The other child of the same parent; it may not exist in the tree.
  [[nodiscard]] constexpr TreeNode sibling() const { return {level, index ^ 1}; }
  friend constexpr bool operator==(TreeNode, TreeNode) = default;
};

/// The fixed order in which the leaves of a step are summed, independent of threads and cores.
///
/// Leaf i is the gradient of the step's minibatch i. Node (k, i) is the sum of the leaves [i 2^k,
/// (i + 1) 2^k), as far as they exist; a node without a sibling moves up unchanged. For six leaves:
///
///     level 3             0                  (((0+1)+(2+3))+(4+5))
///                      /     \                                              .
///     level 2        0         1
///                  /   \       |             node (2, 1) is node (1, 2)
///     level 1     0     1      2
///                / \   / \    / \                                           .
///     level 0   0   1 2   3  4   5
///
/// The two operands of an addition are fixed, their order is not: IEEE 754 addition commutes.
class SummationTree {
 public:
  /// Requires leaves >= 1.
  constexpr explicit SummationTree(std::int64_t leaves) : leaves_(leaves) {}

  [[nodiscard]] constexpr std::int64_t leaves() const { return leaves_; }
  /// The level of the root: ceil(log2(leaves)).
  [[nodiscard]] constexpr int height() const {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(leaves_ - 1)));
  }
  /// The number of nodes on a level.
  [[nodiscard]] constexpr std::int64_t width(int level) const {
    return ((leaves_ - 1) >> level) + 1;
  }
  [[nodiscard]] constexpr bool contains(TreeNode node) const {
    return node.index < width(node.level);
  }
  [[nodiscard]] constexpr bool is_root(TreeNode node) const { return node.level == height(); }
  /// The leaves below `node`: [first, end).
  [[nodiscard]] constexpr std::pair<std::int64_t, std::int64_t> leaves_below(TreeNode node) const {
    return {node.index << node.level, std::min((node.index + 1) << node.level, leaves_)};
  }
  /// True if all leaves below `node` lie in [begin, end).
  [[nodiscard]] constexpr bool within(TreeNode node, std::int64_t begin, std::int64_t end) const {
    const auto [first, last] = leaves_below(node);
    return begin <= first && last <= end;
  }

 private:
  std::int64_t leaves_;
};

}  // namespace rubato
