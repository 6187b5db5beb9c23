#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rubato/collective/summation_tree.hpp>
#include <rubato/core/check.hpp>

namespace rubato {

/// Where the two children of a node meet, for all nodes of a summation tree.
///
/// Thread safety: meet() may be called by any number of threads at once, twice for each node of a
/// step. All calls of one step must happen before the first call of the next step (the end of a
/// parallel loop does that). clear() must not run beside anything else.
///
/// Invariants:
///  1. Between two steps every slot is null.
///  2. During a step a slot goes null -> first arriver's sum -> null, once.
///  3. A sum in a slot belongs to the tree; nobody reads or writes it until the second arriver
///  takes it.
///
/// Nothing waits: the first arriver leaves and does something else.
///
/// `Sum` is what meets (a partial sum); the tree never looks into it. `Atomic` is std::atomic, or a
/// model checker's.
template <class Sum, template <class> class Atomic = std::atomic>
class CombiningTree {
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

  /// Brings the sum of one child to `parent`.
  ///
  /// Returns null to the first of the two arrivers, whose sum then belongs to the tree, and the
  /// first one's sum to the second. Everything that the first arriver did before its call happens
  /// before the second one's return.
  [[nodiscard]] Sum* meet(TreeNode parent, Sum* sum) {
    Atomic<Sum*>& slot = slot_of(parent).sum;
    Sum* other = nullptr;
    // Release on success publishes what this thread wrote into the sum; acquire on failure, where
    // the other thread was first, makes visible what that thread wrote into its own.
    if (slot.compare_exchange_strong(other, sum, std::memory_order_release,
                                     std::memory_order_acquire)) {
      return nullptr;
    }
    // Relaxed: nobody else comes to this node in this step, and the next step begins after this
    // one.
    slot.store(nullptr, std::memory_order_relaxed);
    return other;
  }

  /// Forgets all sums that a step left behind when it was given up. They belong to the caller
  /// again.
  void clear() {
    // Relaxed: no other thread is here.
    for (Slot& slot : slots_) slot.sum.store(nullptr, std::memory_order_relaxed);
  }

 private:
  // A line of its own, and its neighbour, which the prefetcher fetches with it.
  struct alignas(128) Slot {
    Atomic<Sum*> sum{nullptr};
  };

  Slot& slot_of(TreeNode node) {
    return slots_[static_cast<std::size_t>(level_offset_[static_cast<std::size_t>(node.level)] +
                                           node.index)];
  }

  std::array<std::int64_t, 64> level_offset_{};
  std::vector<Slot> slots_;
};

/// One thread's way up the tree with the leaves of one run.
///
/// The sums of nodes that lie wholly within the run never leave this object: at most one for each
/// level is pending, so a run of n leaves holds at most log2(n) + 1 sums alive. Only nodes that
/// straddle two runs are met in the shared tree.
template <class Sum, template <class> class Atomic = std::atomic>
class LeafRun {
 public:
  /// The leaves [begin, end) of a step, 0 <= begin < end <= shape.leaves().
  LeafRun(const SummationTree& shape, CombiningTree<Sum, Atomic>& tree, std::int64_t begin,
          std::int64_t end)
      : shape_(shape), tree_(tree), begin_(begin), end_(end), next_(begin) {}

  /// Brings in the sum that is the next leaf of the run and climbs as far as that completes nodes.
  ///
  /// `merge(Sum* a, Sum* b)` adds two sums, gives one of them back and disposes of the other.
  /// Returns the sum of the whole step to the one call that completes it, null to all others.
  /// Everything that any thread did before any offer() of the step happens before that one call's
  /// return.
  template <class Merge>
  [[nodiscard]] Sum* offer(Sum* sum, Merge&& merge) {
    RUBATO_CHECK(next_ < end_, "a run is offered no more leaves than it has");
    TreeNode node{0, next_++};
    for (; !shape_.is_root(node); node = node.parent()) {
      const TreeNode sibling = node.sibling();
      if (!shape_.contains(sibling)) continue;
      Sum* other = nullptr;
      if (shape_.within(node.parent(), begin_, end_)) {
        Sum*& pending = pending_[static_cast<std::size_t>(node.level)];
        if (node.index % 2 == 0) {
          pending = sum;
          return nullptr;
        }
        other = pending;
      } else {
        other = tree_.meet(node.parent(), sum);
        if (other == nullptr) return nullptr;
      }
      sum = merge(sum, other);
    }
    return sum;
  }

 private:
  SummationTree shape_;
  CombiningTree<Sum, Atomic>& tree_;
  std::int64_t begin_;
  std::int64_t end_;
  std::int64_t next_;
  // The left child that waits for its right sibling, by its level.
  std::array<Sum*, 64> pending_{};
};

}  // namespace rubato
