#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/reducer.hpp>

#include "loop/runtime/executors/schedule_executor.hpp"

namespace rubato {

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
