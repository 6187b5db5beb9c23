#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/loop/reducer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/sums.hpp>
#include <rubato/steps/plan.hpp>

#include "loop/runtime/reducers/block_reducer.hpp"

namespace rubato {

/// Where the time of a step went, in seconds summed over the threads.
struct ExecutorSeconds {
  /// In the substeps.
  double compute = 0;
  /// In leasing and clearing buffers, adding them and climbing the tree.
  double reduce = 0;
};

/// A minibatch that is to be computed, and by whom.
struct SubstepTask {
  CoreRank core;
  /// Which one of the core's minibatches in the step it is, from 0.
  std::int64_t substep = 0;
  MinibatchIndex minibatch;
  /// How many minibatches, from that one on, and as many substeps.
  std::int64_t count = 1;
  int thread = 0;
};

/// A stretch of time that a thread spent in leasing and clearing buffers and adding them.
struct Merge {
  using Moment = std::chrono::steady_clock::time_point;

  /// After which minibatch of which core; empty for what comes after all of them.
  std::optional<MinibatchIndex> minibatch{};
  /// How many were computed in one pass, from that one on.
  std::int64_t minibatches = 1;
  std::optional<CoreRank> core{};
  int thread = 0;
  Moment begin{};
  Moment end{};
};

/// The sum of a whole step. Gives its buffer back when it goes, which must be before the executor's
/// next run().
template <class T>
class StepSum {
 public:
  /// Whose buffer is somebody else's, and outlives it.
  StepSum(PartialSum<T>& sum, ExecutorSeconds seconds)
      : reducer_(nullptr), sum_(&sum), seconds_(seconds) {}
  StepSum(Reducer<T>& reducer, PartialSum<T>& sum, ExecutorSeconds seconds)
      : reducer_(&reducer), sum_(&sum), seconds_(seconds) {}
  ~StepSum() {
    if (reducer_ != nullptr) reducer_->end_step();
  }
  StepSum(StepSum&& other) noexcept
      : reducer_(std::exchange(other.reducer_, nullptr)),
        sum_(other.sum_),
        seconds_(other.seconds_) {}
  StepSum(const StepSum&) = delete;
  StepSum& operator=(const StepSum&) = delete;
  StepSum& operator=(StepSum&&) = delete;

  [[nodiscard]] std::span<T> values() const { return sum_->values; }
  [[nodiscard]] const StepScalars& scalars() const { return sum_->scalars; }
  /// Multiplies the loss and the squares.
  void scale(double loss, double squares) const {
    sum_->scalars.loss *= loss;
    for (double& square : sum_->squares) square *= squares;
  }
  /// Of each norm block, the sum over the minibatches of the squared norm of the gradient there.
  [[nodiscard]] std::span<const double> squares() const { return sum_->squares; }
  [[nodiscard]] const ExecutorSeconds& seconds() const { return seconds_; }

 private:
  Reducer<T>* reducer_;
  PartialSum<T>* sum_;
  ExecutorSeconds seconds_;
};

/// Runs the substeps of a step on its emulated cores and sums what they give.
///
/// The busy cores of a step are tasks; a core does its substeps one after the other, in ascending
/// order of its minibatches, and gives each result to the reducer. Cores may outnumber threads by
/// any factor, for no task waits. With a reproducible reducer the sum is the same bits for every
/// number of threads, every number of cores and either assignment.
///
/// T is float or double.
template <class T>
class StepExecutor {
 public:
  /// One substep, or several at once: adds the gradient of its minibatch (and whatever else) to
  /// `out`, which comes cleared; of several the sum, in the order of SummationTree(task.count).
  /// Substeps that run at the same time have different `thread`s.
  using Substep = std::function<void(const SubstepTask& task, PartialSum<T>& out)>;

  /// For steps whose leaves are minibatches, summed by the reducer of that name (make_reducer()).
  /// `workers` must outlive the executor.
  StepExecutor(Workers& workers, const ReducerSize& size, std::string_view reducer = "tree");
  /// Hears of each when it has ended: from several threads at once.
  using OnMerge = std::function<void(const Merge& merge)>;

  /// With a reducer of the caller's own, and somebody who hears of merges.
  StepExecutor(Workers& workers, std::unique_ptr<Reducer<T>> reducer, OnMerge on_merge = {});

  /// Runs one step, with at most so many substeps at once where the reducer takes their sums. An
  /// exception from a substep ends the step, is thrown again here and leaves the executor as it was
  /// before. Throws Error, likewise, where the reducer has no sum, one in which a minibatch is
  /// missing or twice, or one whose squares are not taken.
  [[nodiscard]] StepSum<T> run(const StepPlan& step, Assignment assignment, const Substep& substep,
                               std::int64_t at_once = 1);

  [[nodiscard]] const BufferPool<T>& pool() const { return reducer_->pool(); }

 private:
  // One for each thread, on lines of its own.
  struct alignas(128) ThreadSeconds {
    ExecutorSeconds seconds;
  };

  // The sum of a step whose cores are done.
  [[nodiscard]] PartialSum<T>* checked_sum(const StepPlan& step);
  void run_core(const StepPlan& step, CoreRank core, const MinibatchRun& share,
                const Substep& substep, std::int64_t at_once, int thread);

  Workers& workers_;
  std::unique_ptr<Reducer<T>> reducer_;
  // The same, where it is one.
  BlockReducer<T>* block_reducer_;
  OnMerge on_merge_;
  std::vector<ThreadSeconds> seconds_;
};

extern template class StepExecutor<float>;
extern template class StepExecutor<double>;

}  // namespace rubato
