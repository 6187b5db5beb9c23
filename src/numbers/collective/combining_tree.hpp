#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include <rubato/numbers/sums.hpp>

#include "base/core/check.hpp"
#include "summation_tree.hpp"

namespace rubato {

/// Where the two children of a node meet, for all nodes of a summation tree.
///
/// Thread safety: meet() may be called by any number of threads at once, at most twice for each
/// node of a step. begin_step() must not run beside anything else; it must happen after all calls
/// of the step before and before all calls of the new one (as the end and the beginning of a
/// parallel loop do).
///
/// Invariants:
///  1. A slot names the step in which it was last visited. Between begin_step() and the first visit
///     it names an older one, whatever became of that: so a step needs no clearing after it, not
///     even one that was given up.
///  2. The first visitor of a step finds an older step there, the second finds this one. Which is
///     which is decided by one atomic exchange: there is one order of the visits, for all threads.
///  3. A sum in a slot belongs to the tree; nobody reads or writes it until the second visitor
///     takes it.
///
/// Nothing waits: the first visitor leaves and does something else.
///
/// `Atomic` is std::atomic, or a model checker's. `Count` is the unsigned type, of at most 32 bits,
/// in which steps are counted: with a small one a test sees the count begin again.
template <template <class> class Atomic = std::atomic, class Count = std::uint32_t>
class CombiningTree {
  static_assert(std::is_unsigned_v<Count> && std::numeric_limits<Count>::digits <= 32,
                "a visit keeps the step in its upper 32 bits");

 public:
  /// Room for steps of at most `max_leaves` leaves.
  explicit CombiningTree(std::int64_t max_leaves) {
    const SummationTree largest(max_leaves);
    std::int64_t nodes = 0;
    for (int level = 1; level <= largest.height(); ++level) {
      level_offset_[static_cast<std::size_t>(level)] = nodes;
      nodes += largest.width(level);
    }
    slots_ = std::vector<Slot>(static_cast<std::size_t>(nodes));
  }

  /// Every node is unvisited from here on. Sums that a step left behind when it was given up belong
  /// to the caller again.
  void begin_step() {
    if (++step_ != 0) return;
    // The count begins again (after 2^32 steps, where it is the default); what is left of the old
    // count must not be taken for the new. Relaxed: no other thread is here.
    for (Slot& slot : slots_) slot.visit.store(0, std::memory_order_relaxed);
    step_ = 1;
  }

  /// Brings the sum of one child to `parent`.
  ///
  /// Returns nothing to the first of the two visitors, whose sum then belongs to the tree, and the
  /// first one's sum to the second. Everything that the first visitor did before its call happens
  /// before the second one's return.
  [[nodiscard]] std::optional<SumId> meet(TreeNode parent, SumId sum) {
    // Release publishes what the first visitor wrote into its sum; acquire makes that visible to
    // the second. Neither knows beforehand which of the two it is.
    const std::uint64_t before =
        slot_of(parent).exchange(visit_of(step_, sum), std::memory_order_acq_rel);
    if (before >> 32 != step_) return std::nullopt;
    return SumId{static_cast<std::uint32_t>(before)};
  }

 private:
  // The step in the upper half, the sum in the lower. Step 0 never is.
  using Visit = std::uint64_t;
  static constexpr Visit visit_of(Count step, SumId sum) {
    return Visit{step} << 32 | static_cast<std::uint32_t>(sum);
  }

  // A line of its own, and its neighbour, which the prefetcher fetches with it.
  struct alignas(128) Slot {
    Atomic<Visit> visit{0};
  };

  Atomic<Visit>& slot_of(TreeNode node) {
    return slots_[static_cast<std::size_t>(level_offset_[static_cast<std::size_t>(node.level)] +
                                           node.index)]
        .visit;
  }

  std::array<std::int64_t, 64> level_offset_{};
  std::vector<Slot> slots_;
  // Written between steps only.
  Count step_ = 0;
};

/// The sums of the nodes that lie wholly within one contiguous run of leaves, which one thread
/// makes by itself: at most one for each level is pending, so a run of n leaves holds at most
/// log2(n) + 1 sums alive.
class LocalRun {
 public:
  /// A node and the sum of all leaves below it.
  struct Complete {
    TreeNode node;
    SumId sum;
  };

  /// The leaves [begin, end) of a step, 0 <= begin < end <= shape.leaves().
  LocalRun(const SummationTree& shape, std::int64_t begin, std::int64_t end)
      : shape_(shape), begin_(begin), end_(end), next_(begin) {}

  /// The largest node that begins with the next leaf, lies within the run and has at most `most`
  /// leaves, at least 1. Empty where the run is over.
  [[nodiscard]] std::optional<TreeNode> next(std::int64_t most = 1) const {
    if (next_ == end_) return std::nullopt;
    TreeNode node{0, next_};
    while (node.index % 2 == 0 && !shape_.is_root(node) &&
           shape_.within(node.parent(), begin_, end_)) {
      const auto [first, last] = shape_.leaves_below(node.parent());
      if (last - first > most) break;
      node = node.parent();
    }
    return node;
  }

  /// Brings in the sum of the next node, any that next() gives, and climbs as far as that completes
  /// nodes. `merge(SumId left, SumId right)` adds the sums of two children, gives one of them back
  /// and disposes of the other. Returns a node that is complete and whose parent is not within the
  /// run, or the root.
  template <class Merge>
  [[nodiscard]] std::optional<Complete> offer(TreeNode node, SumId sum, Merge&& merge) {
    const auto [first, last] = shape_.leaves_below(node);
    RUBATO_CHECK(first == next_ && last <= end_, "a run is offered its leaves in their order");
    next_ = last;
    for (; !shape_.is_root(node); node = node.parent()) {
      if (!shape_.within(node.parent(), begin_, end_)) break;
      if (!shape_.contains(node.sibling())) continue;
      SumId& pending = pending_[static_cast<std::size_t>(node.level)];
      if (node.index % 2 == 0) {
        pending = sum;
        return std::nullopt;
      }
      sum = merge(pending, sum);
    }
    return Complete{node, sum};
  }

  /// The same of the next leaf.
  template <class Merge>
  [[nodiscard]] std::optional<Complete> offer(SumId sum, Merge&& merge) {
    RUBATO_CHECK(next_ < end_, "a run is offered no more leaves than it has");
    return offer(TreeNode{0, next_}, sum, merge);
  }

 private:
  SummationTree shape_;
  std::int64_t begin_;
  std::int64_t end_;
  std::int64_t next_;
  // The left child that waits for its right sibling, by its level.
  std::array<SumId, 64> pending_{};
};

/// Climbs the shared part of the tree from `from`, a node that is complete, as far as this thread
/// is the second at every node. `merge` as for LocalRun::offer().
///
/// Returns the sum of the whole step to the one call that completes it, nothing to all others.
/// Everything that any thread did before any climb() of the step happens before that one call's
/// return.
template <template <class> class Atomic, class Count, class Merge>
[[nodiscard]] std::optional<SumId> climb(const SummationTree& shape,
                                         CombiningTree<Atomic, Count>& tree,
                                         const LocalRun::Complete& from, Merge&& merge) {
  SumId sum = from.sum;
  for (TreeNode node = from.node; !shape.is_root(node); node = node.parent()) {
    if (!shape.contains(node.sibling())) continue;
    const std::optional<SumId> other = tree.meet(node.parent(), sum);
    if (!other) return std::nullopt;
    sum = node.index % 2 == 0 ? merge(sum, *other) : merge(*other, sum);
  }
  return sum;
}

}  // namespace rubato
