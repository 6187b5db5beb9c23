#pragma once

#include <algorithm>

#include <rubato/loop/reducer.hpp>

#include "numbers/collective/chunked_combining_tree.hpp"

namespace rubato {

/// A combining tree for each chunk of the values. Near the root, where the single tree leaves all
/// work to the thread that comes second, the threads here meet chunk by chunk, each starting at a
/// different one.
template <class T>
class ChunkedTreeReducer final : public Reducer<T> {
 public:
  explicit ChunkedTreeReducer(const ReducerSize& size)
      : Reducer<T>(size),
        values_(size.values),
        chunk_(std::max(kSmallestChunk, (size.values + kMostChunks - 1) / kMostChunks)),
        tree_(size.max_leaves, std::max<std::size_t>(1, (size.values + chunk_ - 1) / chunk_)) {}

  void begin_step(std::int64_t leaves, std::int64_t) override {
    shape_ = SummationTree(leaves);
    tree_.begin_step();
    root_ = nullptr;
  }

  void reduce_core(std::int64_t core, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    BufferPool<T>& buffers = this->buffers();
    const auto merge_whole = [&](SumId left, SumId right) {
      return buffers.id_of(this->merge(buffers[left], buffers[right]));
    };
    const std::int64_t run_length = share.stride == 1 ? share.count : 1;
    for (std::int64_t done = 0; done < share.count; done += run_length) {
      const std::int64_t begin = share[done];
      LocalRun run(shape_, begin, begin + run_length);
      for (std::int64_t leaf = begin; leaf < begin + run_length; ++leaf) {
        const auto complete = run.offer(buffers.id_of(next(leaf)), merge_whole);
        if (complete) climb(static_cast<std::size_t>(core), *complete);
      }
    }
  }

  [[nodiscard]] PartialSum<T>* finish_step() override {
    // A step of a single leaf was never merged, so its squares have not been taken.
    if (root_ != nullptr) root_->take_squares(this->norms());
    return root_;
  }

 private:
  // Values in a chunk: with fewer, meeting would cost more than adding.
  static constexpr std::size_t kSmallestChunk = std::size_t{1} << 14;
  static constexpr std::size_t kMostChunks = 64;

  void climb(std::size_t core, const LocalRun::Complete& from) {
    BufferPool<T>& buffers = this->buffers();
    const auto root = tree_.climb(
        shape_, core, from,
        [this](std::size_t chunk, SumId left, SumId right) { add_chunk(chunk, left, right); },
        [&buffers](SumId sum) { buffers.release(buffers[sum]); });
    // One core writes this; finish_step(), which follows all cores, reads it.
    if (root) root_ = buffers[*root];
  }

  void add_chunk(std::size_t chunk, SumId left, SumId right) {
    PartialSum<T>& into = *this->buffers()[left];
    PartialSum<T>& from = *this->buffers()[right];
    const NormBlocks& norms = this->norms();
    into.add_range(from, norms, norms.align(std::min(chunk * chunk_, values_)),
                   norms.align(std::min((chunk + 1) * chunk_, values_)));
    if (chunk == 0) into.scalars += from.scalars;
  }

  std::size_t values_;
  std::size_t chunk_;
  ChunkedCombiningTree<> tree_;
  SummationTree shape_{1};
  PartialSum<T>* root_ = nullptr;
};

}  // namespace rubato
