#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <rubato/loop/reducer.hpp>

#include "block_reducer.hpp"
#include "numbers/collective/combining_tree.hpp"

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
      tell_meeting(CoreRank{core}, left, right);
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

  void hear_meetings(typename Reducer<T>::OnMeeting on_meeting) override {
    on_meeting_ = std::move(on_meeting);
    notes_.resize(on_meeting_ ? this->pool().max_buffers() : 0);
  }

 private:
  // The core that added to a sum last, and when. A note belongs to its sum, which only one thread
  // has at a time.
  struct Note {
    CoreRank core{};
    Meeting::Moment at{};
  };

  void note(SumId sum, CoreRank core) {
    if (!on_meeting_) return;
    notes_[static_cast<std::size_t>(sum)] = {.core = core, .at = std::chrono::steady_clock::now()};
  }
  // One of the two sums is the core's own; both may be if the share is not a run.
  void tell_meeting(CoreRank core, SumId left, SumId right) {
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

}  // namespace rubato
