#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include <rubato/collective/combining_tree.hpp>
#include <rubato/core/check.hpp>
#include <rubato/runtime/reducer.hpp>

namespace rubato {

/// A combining tree for each chunk of the values. Near the root, where the single tree leaves all
/// to the thread that comes second, the threads here meet chunk by chunk, each starting at another
/// one.
///
/// A sum always goes into the left child's buffer, so that all chunks of the step's sum end up in
/// the buffer of leaf 0. A buffer is free when its last chunk has been added to another.
template <class T>
class ChunkedTreeReducer final : public Reducer<T> {
 public:
  explicit ChunkedTreeReducer(const ReducerSize& size)
      : Reducer<T>(size),
        values_(size.values),
        chunk_(std::max(kSmallestChunk, (size.values + kMostChunks - 1) / kMostChunks)),
        chunks_left_(static_cast<std::size_t>(size.max_leaves)) {
    const std::size_t chunks = std::max<std::size_t>(1, (size.values + chunk_ - 1) / chunk_);
    trees_.reserve(chunks);
    for (std::size_t i = 0; i < chunks; ++i) trees_.emplace_back(size.max_leaves);
  }

  void begin_step(std::int64_t leaves, std::int64_t) override {
    shape_ = SummationTree(leaves);
    for (CombiningTree<>& tree : trees_) tree.begin_step();
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
        if (complete) climb_chunks(static_cast<std::size_t>(core), *complete);
      }
    }
  }

  [[nodiscard]] PartialSum<T>* finish_step() override {
    // Of a step of one leaf, which was never merged.
    if (root_ != nullptr) root_->take_squares(this->norms());
    return root_;
  }

 private:
  // Values in a chunk: fewer make the meeting dearer than the adding.
  static constexpr std::size_t kSmallestChunk = std::size_t{1} << 14;
  static constexpr std::size_t kMostChunks = 64;

  void climb_chunks(std::size_t core, const LocalRun::Complete& from) {
    const std::size_t chunks = trees_.size();
    // Relaxed: the meeting of a chunk publishes it, before anybody else counts.
    chunks_left_[static_cast<std::size_t>(from.sum)].store(chunks, std::memory_order_relaxed);
    for (std::size_t i = 0; i < chunks; ++i) {
      const std::size_t chunk = (core + i) % chunks;
      const auto merge = [&](SumId left, SumId right) { return merge_chunk(chunk, left, right); };
      const auto root = climb(shape_, trees_[chunk], from, merge);
      if (root && chunk == 0) root_ = this->buffers()[*root];
    }
  }

  SumId merge_chunk(std::size_t chunk, SumId left, SumId right) {
    BufferPool<T>& buffers = this->buffers();
    PartialSum<T>& into = *buffers[left];
    PartialSum<T>& from = *buffers[right];
    const NormBlocks& norms = this->norms();
    into.add_range(from, norms, norms.align(std::min(chunk * chunk_, values_)),
                   norms.align(std::min((chunk + 1) * chunk_, values_)));
    if (chunk == 0) into.scalars += from.scalars;
    // Release: what this thread read of the buffer is read before it is given away. Acquire: what
    // the others read, too.
    if (chunks_left_[static_cast<std::size_t>(right)].fetch_sub(1, std::memory_order_acq_rel) ==
        1) {
      buffers.release(&from);
    }
    return left;
  }

  std::size_t values_;
  std::size_t chunk_;
  std::vector<CombiningTree<>> trees_;
  // Of each buffer, the chunks that have not been added to another buffer.
  std::vector<std::atomic<std::size_t>> chunks_left_;
  SummationTree shape_{1};
  PartialSum<T>* root_ = nullptr;
};

}  // namespace rubato
