#pragma once

#include <rubato/loop/reducer.hpp>

#include "numbers/collective/combining_tree.hpp"

namespace rubato {

/// The combining tree on whole buffers.
template <class T>
class TreeReducer final : public Reducer<T> {
 public:
  // The sums alive at one time are over disjoint sets of leaves.
  explicit TreeReducer(const ReducerSize& size) : Reducer<T>(size), tree_(size.max_leaves) {}

  void begin_step(std::int64_t leaves, std::int64_t) override {
    shape_ = SummationTree(leaves);
    tree_.begin_step();
    root_ = nullptr;
  }

  void reduce_core(std::int64_t, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    BufferPool<T>& buffers = this->buffers();
    const auto merge = [&](SumId left, SumId right) {
      return buffers.id_of(this->merge(buffers[left], buffers[right]));
    };
    // The leaves of a strided share are no neighbours: each is a run of its own.
    const std::int64_t run_length = share.stride == 1 ? share.count : 1;
    for (std::int64_t done = 0; done < share.count; done += run_length) {
      const std::int64_t begin = share[done];
      LocalRun run(shape_, begin, begin + run_length);
      for (std::int64_t leaf = begin; leaf < begin + run_length; ++leaf) {
        const auto complete = run.offer(buffers.id_of(next(leaf)), merge);
        if (!complete) continue;
        const auto root = climb(shape_, tree_, *complete, merge);
        // By the one core that completes the sum; seen by finish_step(), which comes after all.
        if (root) root_ = buffers[*root];
      }
    }
  }

  [[nodiscard]] PartialSum<T>* finish_step() override {
    // Of a step of one leaf, which was never merged.
    if (root_ != nullptr) root_->take_squares(this->norms());
    return root_;
  }

 private:
  CombiningTree<> tree_;
  SummationTree shape_{1};
  PartialSum<T>* root_ = nullptr;
};

}  // namespace rubato
