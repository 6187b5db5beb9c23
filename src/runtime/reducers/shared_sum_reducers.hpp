#pragma once

#include <atomic>
#include <mutex>

#include <rubato/runtime/reducer.hpp>

namespace rubato {

// One sum for all cores, into which each leaf is added as it comes: what the tree is measured
// against. The order of the sum is that of arrival.

/// Under one lock.
template <class T>
class MutexReducer final : public Reducer<T> {
 public:
  explicit MutexReducer(const ReducerSize& size) : Reducer<T>(size, size.max_leaves + 1) {}

  void begin_step(std::int64_t, std::int64_t) override { sum_ = this->lease(); }

  void reduce_core(std::int64_t, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    for (std::int64_t i = 0; i < share.count; ++i) {
      PartialSum<T>* leaf = next(share[i]);
      {
        const std::scoped_lock lock(mutex_);
        this->add(sum_, leaf);
      }
      this->buffers().release(leaf);
    }
  }

  [[nodiscard]] PartialSum<T>* finish_step() override { return sum_; }

 private:
  std::mutex mutex_;
  PartialSum<T>* sum_ = nullptr;
};

/// Each value by an atomic addition.
template <class T>
class AtomicReducer final : public Reducer<T> {
 public:
  explicit AtomicReducer(const ReducerSize& size) : Reducer<T>(size, size.max_leaves + 1) {}

  void begin_step(std::int64_t, std::int64_t) override {
    sum_ = this->lease();
    sum_->take_squares(this->norms());
  }

  void reduce_core(std::int64_t, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    for (std::int64_t i = 0; i < share.count; ++i) {
      PartialSum<T>* leaf = next(share[i]);
      leaf->take_squares(this->norms());
      // Relaxed: the sum is read after all cores.
      for (std::size_t k = 0; k < leaf->values.size(); ++k) {
        std::atomic_ref(sum_->values[k]).fetch_add(leaf->values[k], std::memory_order_relaxed);
      }
      {
        const std::scoped_lock lock(scalars_mutex_);
        sum_->scalars += leaf->scalars;
        for (std::size_t k = 0; k < leaf->squares.size(); ++k) sum_->squares[k] += leaf->squares[k];
      }
      this->buffers().release(leaf);
    }
  }

  [[nodiscard]] PartialSum<T>* finish_step() override { return sum_; }

 private:
  std::mutex scalars_mutex_;
  PartialSum<T>* sum_ = nullptr;
};

}  // namespace rubato
