#pragma once

#include <vector>

#include <rubato/loop/reducer.hpp>

#include "numbers/collective/summation_tree.hpp"
#include "numbers/collective/tree_sum.hpp"

namespace rubato {

/// Keeps all leaves, and sums them in one pass once all are there: each thread sums a part of the
/// values.
template <class T>
class ShardedReducer final : public Reducer<T> {
 public:
  ShardedReducer(const ReducerSize& size, Workers& workers)
      : Reducer<T>(size),
        workers_(workers),
        leaves_(static_cast<std::size_t>(size.max_leaves)),
        values_(static_cast<std::size_t>(size.max_leaves)) {}

  void begin_step(std::int64_t leaves, std::int64_t) override {
    count_ = static_cast<std::size_t>(leaves);
  }

  void reduce_core(std::int64_t, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    for (std::int64_t i = 0; i < share.count; ++i) {
      const auto leaf = static_cast<std::size_t>(share[i]);
      leaves_[leaf] = next(share[i]);
      values_[leaf] = leaves_[leaf]->values.data();
    }
  }

  [[nodiscard]] PartialSum<T>* finish_step() override {
    PartialSum<T>& sum = *leaves_.front();
    const std::span<const T* const> all(values_.data(), count_);
    const NormBlocks& norms = this->norms();
    workers_.for_each_range(sum.values.size(), [&](std::size_t begin, std::size_t end) {
      norms.for_each_within(norms.align(begin), norms.align(end),
                            [&](std::size_t block, std::size_t from, std::size_t to) {
                              // Squares are taken first, because the sum overwrites a leaf; the
                              // leaves are then in the cache for the sum.
                              if (block < norms.size()) sum_squares_of(block);
                              tree_sum(all, from, sum.values.subspan(from, to - from));
                            });
    });
    for_each_pair([](PartialSum<T>& left, PartialSum<T>& right) { left.scalars += right.scalars; });
    return &sum;
  }

 private:
  // Calls task(left, right) for every inner node of the tree, from the leaves up, with the leaves
  // whose buffers hold the sums of its children.
  template <class Task>
  void for_each_pair(Task&& task) {
    const SummationTree tree(static_cast<std::int64_t>(count_));
    for (int level = 0; level < tree.height(); ++level) {
      for (TreeNode right{level, 1}; tree.contains(right); right.index += 2) {
        const auto first = static_cast<std::size_t>(tree.leaves_below(right).first);
        const auto left = static_cast<std::size_t>(tree.leaves_below(right.sibling()).first);
        task(*leaves_[left], *leaves_[first]);
      }
    }
  }

  void sum_squares_of(std::size_t block) {
    for (std::size_t i = 0; i < count_; ++i) leaves_[i]->squares_of(this->norms(), block);
    for_each_pair([block](PartialSum<T>& left, PartialSum<T>& right) {
      left.squares[block] += right.squares[block];
    });
  }

  Workers& workers_;
  std::vector<PartialSum<T>*> leaves_;
  std::vector<const T*> values_;
  std::size_t count_ = 0;
};

}  // namespace rubato
