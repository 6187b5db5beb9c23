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

#include <rubato/loop/faults.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/sums.hpp>
#include <rubato/steps/plan.hpp>

namespace rubato {

/// A reducer that accepts the sums of several leaves at once from callers that compute them so.
template <class T>
class BlockReducer : public Reducer<T> {
 public:
  /// Returns the buffer, leased from this reducer, that holds the sum of the `count` leaves
  /// beginning at `first`, which are all those below a node of the step's SummationTree, summed in
  /// the order of that tree.
  using NextBlock = std::function<PartialSum<T>*(std::int64_t first, std::int64_t count)>;
  /// Sums the share of a core as Reducer::reduce_core() does, in blocks of at most `most` leaves. A
  /// contiguous share may be that of several cores, of which `core` is the first.
  virtual void reduce_blocks(std::int64_t core, const LeafShare& share, std::int64_t most,
                             const NextBlock& next) = 0;

 protected:
  using Reducer<T>::Reducer;
};

/// The time of a step by kind of work, in seconds summed over the threads.
struct ExecutorSeconds {
  /// Seconds in the substeps.
  double compute = 0;
  /// Seconds in leasing and clearing buffers, adding them and climbing the tree.
  double reduce = 0;
};

/// A minibatch to be computed, and the core that computes it.
struct SubstepTask {
  CoreRank core;
  /// The index among the core's minibatches in the step, from 0.
  std::int64_t substep = 0;
  MinibatchIndex minibatch;
  /// The number of minibatches, beginning with that one.
  std::int64_t count = 1;
  /// The number of cores, beginning with that one, that these minibatches belong to.
  std::int64_t cores = 1;
  /// The step among whose cores they are divided; of several hosts, the part of this one.
  const StepPlan* step = nullptr;
  int thread = 0;
};

/// A time span in which a thread leased, cleared and added buffers.
struct Merge {
  using Moment = std::chrono::steady_clock::time_point;

  /// The minibatch before the merge, with its core; empty for the work that follows all of them.
  std::optional<MinibatchIndex> minibatch{};
  /// The number of minibatches computed in one pass, beginning with that one.
  std::int64_t minibatches = 1;
  std::optional<CoreRank> core{};
  /// The number of cores of that pass.
  std::int64_t cores = 1;
  int thread = 0;
  Moment begin{};
  Moment end{};
};

/// The sum of a whole step. Owns its buffer; destroy before the executor's next run().
template <class T>
class StepSum {
 public:
  /// Borrows a sum; the buffer must outlive this object.
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
  /// The sum over the minibatches of the squared norm of the gradient in each norm block.
  [[nodiscard]] std::span<const double> squares() const { return sum_->squares; }
  [[nodiscard]] const ExecutorSeconds& seconds() const { return seconds_; }

 private:
  Reducer<T>* reducer_;
  PartialSum<T>* sum_;
  ExecutorSeconds seconds_;
};

/// Divides the busy cores of a step into tasks. A task is one core, unless passes over several
/// minibatches are faster; it is then a run of neighbouring cores, and a pass may span them.
///
/// Runs are no longer than the balance of the threads allows: if all minibatches take equally long,
/// the busiest thread has no more of them than if each core were a task.
class CoreTasks {
 public:
  /// Returns the minibatches of each task, in ascending order of its cores; valid until the next
  /// call. A pass has at most `at_once` minibatches.
  [[nodiscard]] std::span<const MinibatchRun> divide(const StepPlan& step, Assignment assignment,
                                                     int threads, std::int64_t at_once);

 private:
  std::int64_t divide_evenly(const StepPlan& step, Assignment assignment, std::int64_t most,
                             std::int64_t busiest);

  std::vector<MinibatchRun> tasks_{};
  // The minibatches of each thread.
  std::vector<std::int64_t> loads_{};
};

/// Runs the substeps of a step on its emulated cores and sums their results.
///
/// The busy cores of a step are tasks, or runs of them are (CoreTasks); a task runs its substeps
/// one after the other, in ascending order of its minibatches, and passes each result to the
/// reducer. Cores may outnumber threads by any factor, because no task waits. With a reproducible
/// reducer the sum is the same bits for every number of threads, every number of cores and either
/// assignment.
///
/// T is float or double.
template <class T>
class StepExecutor {
 public:
  /// Computes one substep, or several at once: adds the gradient of its minibatch (and any other
  /// values) to `out`, which is cleared before; for several, adds the sum in the order of
  /// SummationTree(task.count). Substeps that run at the same time have different `thread`s.
  using Substep = std::function<void(const SubstepTask& task, PartialSum<T>& out)>;

  /// Sums minibatches with the reducer of that name (make_reducer()). `workers` must outlive the
  /// executor.
  StepExecutor(Workers& workers, const ReducerSize& size, std::string_view reducer = "tree");
  /// Called at the end of each merge, by several threads at once.
  using OnMerge = std::function<void(const Merge& merge)>;

  /// Sums with the caller's reducer, and reports merges.
  StepExecutor(Workers& workers, std::unique_ptr<Reducer<T>> reducer, OnMerge on_merge = {});

  /// Runs one step, with at most `at_once` substeps at once if the reducer accepts their sums. An
  /// exception from a substep ends the step, is rethrown here and leaves the executor as it was
  /// before. Also throws Error if the reducer has no sum, one in which a minibatch is missing or
  /// occurs twice, or one whose squares are not taken.
  [[nodiscard]] StepSum<T> run(const StepPlan& step, Assignment assignment, const Substep& substep,
                               std::int64_t at_once = 1);

  [[nodiscard]] const BufferPool<T>& pool() const { return reducer_->pool(); }

 private:
  // The seconds of a thread, on a cache line of its own.
  struct alignas(128) ThreadSeconds {
    ExecutorSeconds seconds;
  };

  // Returns the sum of a step whose cores are done; throws Error if it is incomplete.
  [[nodiscard]] PartialSum<T>* checked_sum(const StepPlan& step);
  // Runs the minibatches of one task.
  void run_task(const StepPlan& step, Assignment assignment, const MinibatchRun& share,
                const Substep& substep, std::int64_t at_once, int thread);

  Workers& workers_;
  std::unique_ptr<Reducer<T>> reducer_;
  // The same reducer, if it is a BlockReducer; else null.
  BlockReducer<T>* block_reducer_;
  OnMerge on_merge_;
  CoreTasks tasks_;
  std::vector<ThreadSeconds> seconds_;
};

extern template class StepExecutor<float>;
extern template class StepExecutor<double>;

/// A StepExecutor with cores that die and cores that are slow. The sum is the same bits as without
/// faults, if the reducer is reproducible and a substep depends on its minibatch alone.
///
/// T is float or double.
template <class T>
class FaultyExecutor {
 public:
  using Substep = typename StepExecutor<T>::Substep;
  /// Called after an attempt in which cores died, before the step is redone on `cores_left`.
  using OnFault = std::function<void(const StepPlan& attempt, std::span<const FaultRecord> faults,
                                     std::int64_t cores_left)>;

  /// Delays the calling thread by that number of seconds, above 0.
  using Sleep = std::function<void(double seconds)>;

  /// `executor` must outlive it. Stragglers are delayed by `sleep`; without one their thread
  /// sleeps. Throws Error for an option out of range.
  FaultyExecutor(StepExecutor<T>& executor, FaultOptions faults, std::vector<Straggler> stragglers,
                 Sleep sleep = {});

  /// Calls StepExecutor::run(), and repeats it from the beginning as long as cores die in it.
  /// Afterwards `step.cores` is the number of cores that finally computed it. If cores may die or
  /// are slow, substeps run one after the other.
  [[nodiscard]] StepSum<T> run(StepPlan& step, Assignment assignment, const Substep& substep,
                               const OnFault& on_fault, std::int64_t at_once = 1);

 private:
  // Thrown to end an attempt at a step.
  struct CoreDied {};

  [[nodiscard]] std::vector<FaultRecord> faults_of(const StepPlan& step, Assignment assignment,
                                                   std::int64_t attempt) const;
  [[nodiscard]] StepSum<T> run_attempt(const StepPlan& step, Assignment assignment,
                                       const Substep& substep, std::span<const FaultRecord> faults);
  void dawdle(CoreRank core, double seconds) const;

  StepExecutor<T>& executor_;
  FaultModel model_;
  std::vector<Straggler> stragglers_;
  Sleep sleep_;
};

extern template class FaultyExecutor<float>;
extern template class FaultyExecutor<double>;

}  // namespace rubato
