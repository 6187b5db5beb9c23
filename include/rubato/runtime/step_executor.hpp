#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <rubato/collective/combining_tree.hpp>
#include <rubato/collective/partial_sum.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/runtime/buffer_pool.hpp>
#include <rubato/runtime/workers.hpp>

namespace rubato {

/// Where the time of a step went, in seconds summed over the threads.
struct StepSeconds {
  /// In the substeps.
  double compute = 0;
  /// In leasing and clearing buffers, adding them and climbing the tree.
  double reduce = 0;
};

/// The sum of a whole step. Gives its buffer back to the pool when it goes, which must be before
/// the executor's next run().
template <class T>
class StepSum {
 public:
  StepSum(BufferPool<T>& pool, PartialSum<T>* sum, StepSeconds seconds)
      : pool_(&pool), sum_(sum), seconds_(seconds) {}
  ~StepSum() {
    if (sum_ != nullptr) pool_->release(sum_);
  }
  StepSum(StepSum&& other) noexcept
      : pool_(other.pool_), sum_(std::exchange(other.sum_, nullptr)), seconds_(other.seconds_) {}
  StepSum(const StepSum&) = delete;
  StepSum& operator=(const StepSum&) = delete;
  StepSum& operator=(StepSum&&) = delete;

  [[nodiscard]] std::span<T> values() const { return sum_->values; }
  [[nodiscard]] const StepScalars& scalars() const { return sum_->scalars; }
  [[nodiscard]] const StepSeconds& seconds() const { return seconds_; }

 private:
  BufferPool<T>* pool_;
  PartialSum<T>* sum_;
  StepSeconds seconds_;
};

/// Runs the substeps of a step on its emulated cores and sums what they give.
///
/// The busy cores of a step are tasks; a core does its substeps one after the other, in ascending
/// order of its minibatches, and brings each result into the combining tree. Cores may outnumber
/// threads by any factor, for no task waits. The sum is the same bits for every number of threads,
/// every number of cores and either assignment (SummationTree).
///
/// T is float or double.
template <class T>
class StepExecutor {
 public:
  /// One substep: adds the gradient of `minibatch` (and whatever else) to `out`, which comes
  /// cleared. Substeps that run at the same time have different `thread`s.
  using Substep =
      std::function<void(CoreRank core, MinibatchIndex minibatch, int thread, PartialSum<T>& out)>;

  /// For steps of at most `max_minibatches` minibatches with `values` values each. `workers` must
  /// outlive the executor.
  StepExecutor(Workers& workers, std::size_t values, std::int64_t max_minibatches);

  /// Runs one step. An exception from a substep ends the step, is thrown again here and leaves the
  /// executor as it was before.
  [[nodiscard]] StepSum<T> run(const StepPlan& step, Assignment assignment, const Substep& substep);

  [[nodiscard]] const BufferPool<T>& pool() const { return pool_; }

 private:
  // One for each thread, on lines of its own.
  struct alignas(128) ThreadSeconds {
    StepSeconds seconds;
  };

  // One core's substeps. Returns the step's sum if this core completed it.
  PartialSum<T>* run_core(const StepPlan& step, CoreRank core, const MinibatchRun& share,
                          const Substep& substep, int thread);

  Workers& workers_;
  BufferPool<T> pool_;
  CombiningTree<> tree_;
  std::vector<ThreadSeconds> seconds_;
};

extern template class StepExecutor<float>;
extern template class StepExecutor<double>;

}  // namespace rubato
