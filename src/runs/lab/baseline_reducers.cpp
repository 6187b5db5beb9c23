#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_reduce.h>

#include "contestants.hpp"

namespace rubato::lab {

namespace {

using Sum = PartialSum<float>;

// The first two reducers have one sum for all cores, to which leaves are added in the order of
// their arrival.

class MutexReducer final : public Reducer<float> {
 public:
  explicit MutexReducer(const ReducerSize& size) : Reducer(size, size.max_leaves + 1) {}

  void begin_step(std::int64_t, std::int64_t) override { sum_ = lease(); }

  void reduce_core(std::int64_t, const LeafShare& share, const NextLeaf& next) override {
    for (std::int64_t i = 0; i < share.count; ++i) {
      Sum* leaf = next(share[i]);
      {
        const std::scoped_lock lock(mutex_);
        add(sum_, leaf);
      }
      buffers().release(leaf);
    }
  }

  [[nodiscard]] Sum* finish_step() override { return sum_; }

 private:
  std::mutex mutex_;
  Sum* sum_ = nullptr;
};

class AtomicReducer final : public Reducer<float> {
 public:
  explicit AtomicReducer(const ReducerSize& size) : Reducer(size, size.max_leaves + 1) {}

  void begin_step(std::int64_t, std::int64_t) override {
    sum_ = lease();
    sum_->take_squares(norms());
  }

  void reduce_core(std::int64_t, const LeafShare& share, const NextLeaf& next) override {
    for (std::int64_t i = 0; i < share.count; ++i) {
      Sum* leaf = next(share[i]);
      leaf->take_squares(norms());
      // Relaxed suffices: the sum is read only after all cores have finished.
      for (std::size_t k = 0; k < leaf->values.size(); ++k) {
        std::atomic_ref(sum_->values[k]).fetch_add(leaf->values[k], std::memory_order_relaxed);
      }
      {
        const std::scoped_lock lock(scalars_mutex_);
        sum_->scalars += leaf->scalars;
        for (std::size_t k = 0; k < leaf->squares.size(); ++k) sum_->squares[k] += leaf->squares[k];
      }
      buffers().release(leaf);
    }
  }

  [[nodiscard]] Sum* finish_step() override { return sum_; }

 private:
  std::mutex scalars_mutex_;
  Sum* sum_ = nullptr;
};

// The order of its sum does not depend on the threads, but differs from that of the summation tree.
class TbbReducer final : public Reducer<float> {
 public:
  TbbReducer(const ReducerSize& size, Workers& workers)
      : Reducer(size), workers_(workers), leaves_(static_cast<std::size_t>(size.max_leaves)) {}

  void begin_step(std::int64_t leaves, std::int64_t) override {
    count_ = static_cast<std::size_t>(leaves);
  }

  void reduce_core(std::int64_t, const LeafShare& share, const NextLeaf& next) override {
    for (std::int64_t i = 0; i < share.count; ++i) {
      leaves_[static_cast<std::size_t>(share[i])] = next(share[i]);
    }
  }

  [[nodiscard]] Sum* finish_step() override {
    Sum* sum = nullptr;
    const auto add_range = [this](const tbb::blocked_range<std::size_t>& range, Sum* before) {
      for (std::size_t i = range.begin(); i < range.end(); ++i) before = joined(before, leaves_[i]);
      return before;
    };
    workers_.run([&] {
      sum = tbb::parallel_deterministic_reduce(
          tbb::blocked_range<std::size_t>(0, count_), static_cast<Sum*>(nullptr), add_range,
          [this](Sum* left, Sum* right) { return joined(left, right); });
    });
    sum->take_squares(norms());
    return sum;
  }

 private:
  Sum* joined(Sum* left, Sum* right) {
    if (left == nullptr || right == nullptr) return left == nullptr ? right : left;
    return merge(left, right);
  }

  Workers& workers_;
  std::vector<Sum*> leaves_;
  std::size_t count_ = 0;
};

}  // namespace

std::span<const std::string_view> baseline_names() {
  static constexpr std::array<std::string_view, 3> kNames{"mutex", "atomic", "tbb"};
  return kNames;
}

std::unique_ptr<Reducer<float>> make_baseline(std::string_view name, const ReducerSize& size,
                                              Workers& workers) {
  if (name == "mutex") return std::make_unique<MutexReducer>(size);
  if (name == "atomic") return std::make_unique<AtomicReducer>(size);
  if (name == "tbb") return std::make_unique<TbbReducer>(size, workers);
  return nullptr;
}

}  // namespace rubato::lab
