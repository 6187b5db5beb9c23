#pragma once

#include <vector>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_reduce.h>

#include <rubato/runtime/reducer.hpp>

namespace rubato {

/// Keeps all leaves and leaves the rest to oneTBB: its order does not depend on the threads, but is
/// another than the summation tree's.
template <class T>
class TbbReducer final : public Reducer<T> {
 public:
  TbbReducer(const ReducerSize& size, Workers& workers)
      : Reducer<T>(size), workers_(workers), leaves_(static_cast<std::size_t>(size.max_leaves)) {}

  void begin_step(std::int64_t leaves, std::int64_t) override {
    count_ = static_cast<std::size_t>(leaves);
  }

  void reduce_core(std::int64_t, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    for (std::int64_t i = 0; i < share.count; ++i) {
      leaves_[static_cast<std::size_t>(share[i])] = next(share[i]);
    }
  }

  [[nodiscard]] PartialSum<T>* finish_step() override {
    PartialSum<T>* sum = nullptr;
    const auto add_range = [this](const tbb::blocked_range<std::size_t>& range,
                                  PartialSum<T>* before) {
      for (std::size_t i = range.begin(); i < range.end(); ++i) before = joined(before, leaves_[i]);
      return before;
    };
    workers_.run([&] {
      sum = tbb::parallel_deterministic_reduce(
          tbb::blocked_range<std::size_t>(0, count_), static_cast<PartialSum<T>*>(nullptr),
          add_range,
          [this](PartialSum<T>* left, PartialSum<T>* right) { return joined(left, right); });
    });
    sum->take_squares(this->norms());
    return sum;
  }

 private:
  PartialSum<T>* joined(PartialSum<T>* left, PartialSum<T>* right) {
    if (left == nullptr || right == nullptr) return left == nullptr ? right : left;
    return this->merge(left, right);
  }

  Workers& workers_;
  std::vector<PartialSum<T>*> leaves_;
  std::size_t count_ = 0;
};

}  // namespace rubato
