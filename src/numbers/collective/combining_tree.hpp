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

/// Meeting points for the two children of each node of a summation tree.
///
/// Thread safety: meet() may be called by any number of threads at once, at most twice for each
/// node of a step. begin_step() must not run beside anything else; it must happen after all calls
/// of the step before and before all calls of the new one (as the end and the beginning of a
/// parallel loop do).
///
/// Invariants:
///  1. A slot names the step in which it was last visited. Between begin_step() and the first visit
///     it names an older one, even if that step was abandoned, so slots need no clearing after a
///     step.
///  2. The first visitor in a step finds an older step in the slot, the second finds this one. One
///     atomic exchange decides which is which, so all threads see one order of the visits.
///  3. A sum in a slot belongs to the tree; nobody reads or writes it until the second visitor
///     takes it.
///
/// No thread waits: the first visitor leaves and does something else.
///
/// `Atomic` is std::atomic, or a model checker's. `Count` is the unsigned type, of at most 32 bits,
/// in which steps are counted; a test chooses a small one to see the count wrap around.
template <template <class> class Atomic = std::atomic, class Count = std::uint32_t>
class CombiningTree {
  static_assert(std::is_unsigned_v<Count> && std::numeric_limits<Count>::digits <= 32,
                "a visit keeps the step in its upper 32 bits");

 public:
  /// Creates slots for steps of at most `max_leaves` leaves.
  explicit CombiningTree(std::int64_t max_leaves) {
    const SummationTree largest(max_leaves);
    std::int64_t nodes = 0;
    for (int level = 1; level <= largest.height(); ++level) {
      level_offset_[static_cast<std::size_t>(level)] = nodes;
      nodes += largest.width(level);
    }
    slots_ = std::vector<Slot>(static_cast<std::size_t>(nodes));
  }

  /// Makes every node unvisited. Sums left behind by an abandoned step belong to the caller again.
  void begin_step() {
    if (++step_ != 0) return;
    // The count has wrapped around (after 2^32 steps by default); entries of the old count must not
    // be mistaken for new ones. Relaxed: no other thread uses the tree now.
    for (Slot& slot : slots_) slot.visit.store(0, std::memory_order_relaxed);
    step_ = 1;
  }

  /// Brings the sum of one child to `parent`.
  ///
  /// Returns nothing to the first of the two visitors, whose sum then belongs to the tree, and
  /// returns that sum to the second. Everything that the first visitor did before its call happens
  /// before the return of the second one's.
  [[nodiscard]] std::optional<SumId> meet(TreeNode parent, SumId sum) {
    // Release publishes the first visitor's writes to its sum; acquire makes them visible to the
    // second. Neither knows beforehand which of the two it is.
    const std::uint64_t before =
        slot_of(parent).exchange(visit_of(step_, sum), std::memory_order_acq_rel);
    if (before >> 32 != step_) return std::nullopt;
    return SumId{static_cast<std::uint32_t>(before)};
  }

 private:
  // The step is in the upper half, the sum in the lower. Step 0 never occurs.
  using Visit = std::uint64_t;
  static constexpr Visit visit_of(Count step, SumId sum) {
    return Visit{step} << 32 | static_cast<std::uint32_t>(sum);
  }

  // A slot has a cache line of its own, and the neighbouring line that the prefetcher fetches with
  // it.
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
  // Written only between steps.
  Count step_ = 0;
};

/// Sums the nodes that lie wholly within one contiguous run of leaves, by one thread. At most one
/// sum for each level is pending, so a run of n leaves holds at most log2(n) + 1 sums alive.
class LocalRun {
 public:
  /// A node and the sum of all leaves below it.
  struct Complete {
    TreeNode node;
    SumId sum;
  };

  /// Creates a run of the leaves [begin, end) of a step, 0 <= begin < end <= shape.leaves().
  LocalRun(const SummationTree& shape, std::int64_t begin, std::int64_t end)
      : shape_(shape), begin_(begin), end_(end), next_(begin) {}

  /// The largest node that begins with the next leaf, lies within the run and has at most `most`
  /// leaves; requires most >= 1. Empty at the end of the run.
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

  /// Takes the sum of `node`, any that next() may return, and climbs as far as that completes
  /// nodes. `merge(SumId left, SumId right)` adds the sums of two children, returns one of them and
  /// disposes of the other. Returns a complete node if its parent is not within the run, or the
  /// root.
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

  /// Like the function above, for the next leaf.
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
  // The left child of each level that waits for its right sibling.
  std::array<SumId, 64> pending_{};
};

/// Climbs the shared part of the tree from the complete node `from`, as long as this thread is the
/// second at every node. `merge` has the requirements of LocalRun::offer()'s.
///
/// Returns the sum of the whole step to the one call that completes it, and nothing to all others.
/// Everything that any thread did before any climb() of the step happens before that call's return.
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

/// A combining tree for each chunk of the values of a sum, and for each sum the number of its
/// chunks still in use.
///
/// Thread safety: climb() may be called by any number of threads at once, once for each complete
/// node of a step. begin_step() has the requirements of CombiningTree's.
///
/// Invariants:
///  1. A chunk of a sum belongs to one thread, or to the tree of that chunk. The chunks of one sum
///     may belong to different threads.
///  2. A sum is disposed of by the thread that added its last chunk to another. Everything that any
///     thread did with a chunk of the sum happens before that.
///  3. The right sum goes into the left one. So all chunks of the step's sum end up in the sum of
///     the leftmost leaf, which is never disposed of.
///
/// `Atomic` is std::atomic, or a model checker's.
template <template <class> class Atomic = std::atomic>
class ChunkedCombiningTree {
 public:
  /// Creates trees for steps of at most `max_leaves` leaves, whose sums have numbers below that,
  /// and for at least one chunk.
  ChunkedCombiningTree(std::int64_t max_leaves, std::size_t chunks)
      : chunks_left_(static_cast<std::size_t>(max_leaves)) {
    trees_.reserve(chunks);
    for (std::size_t i = 0; i < chunks; ++i) trees_.emplace_back(max_leaves);
  }

  [[nodiscard]] std::size_t chunks() const { return trees_.size(); }

  /// Makes every node of every chunk unvisited.
  void begin_step() {
    for (CombiningTree<Atomic>& tree : trees_) tree.begin_step();
  }

  /// Climbs from `from` with every chunk, starting with chunk `first` (modulo their number), so
  /// that threads which arrive at the same time meet at different chunks.
  ///
  /// `add(chunk, left, right)` adds a chunk of the right sum to that of the left one;
  /// `dispose(right)` is called when all chunks of the right sum have been added. Returns the
  /// step's sum to the one call that completes its chunk 0; other calls may still be working on the
  /// rest.
  template <class Add, class Dispose>
  [[nodiscard]] std::optional<SumId> climb(const SummationTree& shape, std::size_t first,
                                           const LocalRun::Complete& from, Add&& add,
                                           Dispose&& dispose) {
    const std::size_t chunks = trees_.size();
    // Relaxed: no other thread changes the count before it meets this one at a node, which
    // publishes it.
    chunks_left_[static_cast<std::size_t>(from.sum)].store(chunks, std::memory_order_relaxed);
    std::optional<SumId> sum;
    for (std::size_t i = 0; i < chunks; ++i) {
      const std::size_t chunk = (first + i) % chunks;
      const auto root = rubato::climb(shape, trees_[chunk], from, [&](SumId left, SumId right) {
        add(chunk, left, right);
        // Release: this thread's work on the sum happens before the sum is given away. Acquire: so
        // does the work of the others.
        const std::size_t before =
            chunks_left_[static_cast<std::size_t>(right)].fetch_sub(1, std::memory_order_acq_rel);
        if (before == 1) dispose(right);
        return left;
      });
      if (root && chunk == 0) sum = root;
    }
    return sum;
  }

 private:
  std::vector<CombiningTree<Atomic>> trees_;
  // For each sum, the number of chunks that have not been added to another sum.
  std::vector<Atomic<std::size_t>> chunks_left_;
};

}  // namespace rubato
