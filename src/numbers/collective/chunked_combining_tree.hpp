#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "combining_tree.hpp"
#include "summation_tree.hpp"

namespace rubato {

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
