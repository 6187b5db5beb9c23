#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/loop/reducer.hpp>

#include "numbers/collective/combining_tree.hpp"
#include "numbers/collective/summation_tree.hpp"
#include "numbers/collective/tree_sum.hpp"
#include "schedule_executor.hpp"
#include "step_executor.hpp"

namespace rubato {

/// The combining tree on whole buffers.
template <class T>
class TreeReducer final : public BlockReducer<T> {
 public:
  // Sums that are alive at the same time cover disjoint sets of leaves, so max_leaves buffers
  // suffice.
  explicit TreeReducer(const ReducerSize& size) : BlockReducer<T>(size), tree_(size.max_leaves) {}

  void begin_step(std::int64_t leaves, std::int64_t) override {
    shape_ = SummationTree(leaves);
    tree_.begin_step();
    root_ = nullptr;
  }

  void reduce_core(std::int64_t core, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    reduce_blocks(core, share, 1, [&next](std::int64_t leaf, std::int64_t) { return next(leaf); });
  }

  void reduce_blocks(std::int64_t core, const LeafShare& share, std::int64_t most,
                     const typename BlockReducer<T>::NextBlock& next) override {
    BufferPool<T>& buffers = this->buffers();
    const auto merge = [&](SumId left, SumId right) {
      return buffers.id_of(this->merge(buffers[left], buffers[right]));
    };
    const auto meet = [&](SumId left, SumId right) {
      report_meeting(CoreRank{core}, left, right);
      const SumId sum = merge(left, right);
      note(sum, CoreRank{core});
      return sum;
    };
    // The leaves of a strided share are not neighbours: each is a run of its own.
    const std::int64_t run_length = share.stride == 1 ? share.count : 1;
    for (std::int64_t done = 0; done < share.count; done += run_length) {
      const std::int64_t begin = share[done];
      LocalRun run(shape_, begin, begin + run_length);
      while (const auto node = run.next(most)) {
        const auto [first, end] = shape_.leaves_below(*node);
        const auto complete = run.offer(*node, buffers.id_of(next(first, end - first)), merge);
        if (!complete) continue;
        note(complete->sum, CoreRank{core});
        const auto root = climb(shape_, tree_, *complete, meet);
        // The core that completes the sum writes this; finish_step(), which follows all cores,
        // reads it.
        if (root) root_ = buffers[*root];
      }
    }
  }

  [[nodiscard]] PartialSum<T>* finish_step() override {
    // A step of a single leaf was never merged, so its squares have not been taken.
    if (root_ != nullptr) root_->take_squares(this->norms());
    return root_;
  }

  void observe_meetings(typename Reducer<T>::OnMeeting on_meeting) override {
    on_meeting_ = std::move(on_meeting);
    notes_.resize(on_meeting_ ? this->pool().max_buffers() : 0);
  }

 private:
  // The core that added to a sum last, the first of several that one pass spans, and when. A note
  // belongs to its sum, which only one thread has at a time.
  struct Note {
    CoreRank core{};
    Meeting::Moment at{};
  };

  void note(SumId sum, CoreRank core) {
    if (!on_meeting_) return;
    notes_[static_cast<std::size_t>(sum)] = {.core = core, .at = std::chrono::steady_clock::now()};
  }
  // One of the two sums is the core's own; both may be if the share is not a run.
  void report_meeting(CoreRank core, SumId left, SumId right) {
    if (!on_meeting_) return;
    const Note& of_left = notes_[static_cast<std::size_t>(left)];
    const Note& of_right = notes_[static_cast<std::size_t>(right)];
    const Note& first = of_left.core == core ? of_right : of_left;
    if (first.core == core) return;
    on_meeting_({.first = first.core,
                 .left = first.at,
                 .second = core,
                 .taken = std::chrono::steady_clock::now()});
  }

  CombiningTree<> tree_;
  SummationTree shape_{1};
  PartialSum<T>* root_ = nullptr;
  typename Reducer<T>::OnMeeting on_meeting_{};
  // Notes by buffer; empty if nobody listens.
  std::vector<Note> notes_{};
};

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
    for_each_pair([&](PartialSum<T>& left, PartialSum<T>& right) {
      left.add_squares(right, this->norms(), block);
    });
  }

  Workers& workers_;
  std::vector<PartialSum<T>*> leaves_;
  std::vector<const T*> values_;
  std::size_t count_ = 0;
};

/// Every core sums its own leaves; once all cores are done, an all-reduce algorithm sums their
/// sums.
template <class T>
class ScheduleReducer final : public Reducer<T> {
 public:
  ScheduleReducer(std::string_view algorithm, const ReducerSize& size, Workers& workers)
      : Reducer<T>(size), algorithm_(algorithm), values_(size.values), workers_(workers) {
    sums_.reserve(static_cast<std::size_t>(size.max_leaves));
    arrays_.reserve(static_cast<std::size_t>(size.max_leaves));
  }

  void begin_step(std::int64_t, std::int64_t cores) override {
    sums_.assign(static_cast<std::size_t>(cores), nullptr);
    auto [place, added] = executors_.try_emplace(cores);
    if (added) {
      place->second = std::make_unique<ScheduleExecutor<T>>(
          make_all_reduce(algorithm_, static_cast<Rank>(cores), static_cast<std::int64_t>(values_)),
          workers_);
    }
    executor_ = place->second.get();
  }

  void reduce_core(std::int64_t core, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    PartialSum<T>* sum = next(share[0]);
    for (std::int64_t i = 1; i < share.count; ++i) sum = this->merge(sum, next(share[i]));
    sums_[static_cast<std::size_t>(core)] = sum;
  }

  [[nodiscard]] PartialSum<T>* finish_step() override {
    arrays_.clear();
    for (PartialSum<T>* sum : sums_) {
      // Squares are taken before the algorithm overwrites the arrays.
      sum->take_squares(this->norms());
      arrays_.push_back(sum->values.data());
    }
    executor_->run(std::span<T* const>(arrays_));
    PartialSum<T>* const whole = sums_.front();
    for (std::size_t core = 1; core < sums_.size(); ++core) {
      whole->scalars += sums_[core]->scalars;
      for (std::size_t i = 0; i < whole->squares.size(); ++i) {
        whole->squares[i] += sums_[core]->squares[i];
      }
    }
    return whole;
  }

 private:
  std::string algorithm_;
  std::size_t values_;
  Workers& workers_;
  // The executors, by the number of cores.
  std::map<std::int64_t, std::unique_ptr<ScheduleExecutor<T>>> executors_;
  ScheduleExecutor<T>* executor_ = nullptr;
  std::vector<PartialSum<T>*> sums_;
  std::vector<T*> arrays_;
};

}  // namespace rubato
