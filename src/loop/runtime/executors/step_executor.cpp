#include "step_executor.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/stopwatch.hpp"

namespace rubato {

template <class T>
StepExecutor<T>::StepExecutor(Workers& workers, const ReducerSize& size, std::string_view reducer)
    : StepExecutor(workers, make_reducer<T>(reducer, size, workers)) {}

template <class T>
StepExecutor<T>::StepExecutor(Workers& workers, std::unique_ptr<Reducer<T>> reducer,
                              OnMerge on_merge)
    : workers_(workers),
      reducer_(std::move(reducer)),
      block_reducer_(dynamic_cast<BlockReducer<T>*>(reducer_.get())),
      on_merge_(std::move(on_merge)),
      seconds_(static_cast<std::size_t>(workers.threads())) {}

template <class T>
StepSum<T> StepExecutor<T>::run(const StepPlan& step, Assignment assignment, const Substep& substep,
                                std::int64_t at_once) {
  for (ThreadSeconds& thread : seconds_) thread.seconds = {};
  const std::int64_t cores = busy_cores(step.minibatches, step.cores);
  reducer_->begin_step(step.minibatches, cores);
  try {
    workers_.for_each(cores, [&](std::int64_t i, int thread) {
      const CoreRank core{i};
      run_core(step, core, step.share_of(core, assignment), substep, at_once, thread);
    });
  } catch (...) {
    reducer_->end_step();
    throw;
  }
  Stopwatch finish;
  const Merge::Moment finish_begin = finish.begun();
  PartialSum<T>* const sum = checked_sum(step);
  ExecutorSeconds seconds{.compute = 0, .reduce = finish.lap() * workers_.threads()};
  for (const ThreadSeconds& thread : seconds_) {
    seconds.compute += thread.seconds.compute;
    seconds.reduce += thread.seconds.reduce;
  }
  StepSum<T> result(*reducer_, *sum, seconds);
  if (on_merge_) on_merge_({.begin = finish_begin, .end = finish.begun()});
  return result;
}

// The sum is checked because the reducer may be a user's own.
template <class T>
PartialSum<T>* StepExecutor<T>::checked_sum(const StepPlan& step) {
  try {
    PartialSum<T>* const sum = reducer_->finish_step();
    const auto at = [&] { return fmt::format("step {} of the run", step.index.value() + 1); };
    if (sum == nullptr)
      throw Error(fmt::format("the reducer has no sum of {}; accepted: one", at()));
    if (sum->scalars.minibatches != step.minibatches) {
      throw Error(
          fmt::format("the reducer has the sum of {} minibatches of {}, which has {}; "
                      "accepted: each of them once",
                      sum->scalars.minibatches, at(), step.minibatches));
    }
    const std::span<const double> squares = sum->squares;
    if (std::find(squares.begin(), squares.end(), PartialSum<T>::kNotTaken) != squares.end()) {
      throw Error(
          fmt::format("the reducer has a sum of {} whose squares are not taken; accepted: "
                      "all of them (Reducer::add())",
                      at()));
    }
    return sum;
  } catch (...) {
    reducer_->end_step();
    throw;
  }
}

template <class T>
void StepExecutor<T>::run_core(const StepPlan& step, CoreRank core, const MinibatchRun& share,
                               const Substep& substep, std::int64_t at_once, int thread) {
  ExecutorSeconds& seconds = seconds_[static_cast<std::size_t>(thread)].seconds;
  Stopwatch stopwatch;
  SubstepTask task{.core = core, .minibatch = {}, .thread = thread};
  Merge merge{.core = core, .thread = thread, .begin = stopwatch.begun()};
  const auto end_merge = [&] {
    seconds.reduce += stopwatch.lap();
    // Nothing is merged before the first minibatch.
    if (!on_merge_ || !merge.minibatch) return;
    merge.end = stopwatch.begun();
    on_merge_(merge);
  };
  const auto next_block = [&](std::int64_t first, std::int64_t count) {
    PartialSum<T>* const out = reducer_->lease();
    end_merge();
    task.minibatch = MinibatchIndex{step.first_minibatch.value() + first};
    task.count = count;
    substep(task, *out);
    task.substep += count;
    out->scalars.minibatches = count;
    seconds.compute += stopwatch.lap();
    merge.minibatch = task.minibatch;
    merge.minibatches = count;
    merge.begin = stopwatch.begun();
    return out;
  };
  const LeafShare leaves{.first = share.first.value() - step.first_minibatch.value(),
                         .count = share.count,
                         .stride = share.stride};
  // std::function holds references without an allocation.
  if (at_once > 1 && block_reducer_ != nullptr) {
    block_reducer_->reduce_blocks(core.value(), leaves, at_once, std::ref(next_block));
  } else {
    const auto next = [&next_block](std::int64_t leaf) { return next_block(leaf, 1); };
    reducer_->reduce_core(core.value(), leaves, std::ref(next));
  }
  end_merge();
}

template class StepExecutor<float>;
template class StepExecutor<double>;

}  // namespace rubato
