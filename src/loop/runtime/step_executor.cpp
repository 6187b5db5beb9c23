// A busy core, or a run of neighbouring ones, is one task of Workers::for_each(): its reducer asks
// for leaf after leaf through a callback and adds in between, so the task never waits. run_task()
// therefore measures time at the borders of the callback: what lies inside a substep is
// computation, and all else is reduction.
//
// Tasks divide the leaves of a step into runs, whatever cores these belong to. So every node of the
// summation tree is complete in at most one task, which offers it to the combining tree once, and
// neither the order of the sum nor the protocol of the tree depends on the division.
//
// An exception of a substep ends the step: all buffers are taken back, and it is rethrown. Deaths
// of cores are such exceptions: FaultModel decides before an attempt which cores die, by the plan
// or by a hash of seed, step, attempt and core, and FaultyExecutor throws CoreDied in the substep
// that was chosen, and repeats the whole step on the cores that are left.

#include "step_executor.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/faults.hpp>

#include "base/core/portable_math.hpp"
#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"

namespace rubato {

FaultModel::FaultModel(FaultOptions options) : options_(std::move(options)) {
  if (!(options_.rate >= 0 && options_.rate < 1)) {
    throw_error("a fault rate of {}: accepted are values from 0 to below 1", options_.rate);
  }
  for (const Fault& fault : options_.planned) {
    if (fault.core.value() < 0 || fault.step.value() < 0 || fault.substep < 0) {
      throw Error("core, step and substep of a fault count from 0");
    }
  }
}

std::optional<std::int64_t> FaultModel::death(StepIndex step, std::int64_t attempt, CoreRank core,
                                              std::int64_t substeps) const {
  if (attempt == 0) {
    const auto planned =
        std::find_if(options_.planned.begin(), options_.planned.end(),
                     [&](const Fault& fault) { return fault.core == core && fault.step == step; });
    if (planned != options_.planned.end()) return std::min(planned->substep, substeps - 1);
  }
  if (options_.rate == 0) return std::nullopt;
  const std::uint64_t draw = seed_of(options_.seed, {step.value(), attempt, core.value()});
  // The upper 53 bits as a number in [0, 1).
  if (static_cast<double>(draw >> 11) * 0x1p-53 >= options_.rate) return std::nullopt;
  return static_cast<std::int64_t>(mixed(draw) % static_cast<std::uint64_t>(substeps));
}

namespace {

// A task of several cores has at most this part of the minibatches of the largest pass: longer
// passes are hardly faster, and shorter tasks are shared out better (docs/adr/0065).
constexpr std::int64_t kPartOfPass = 4;

}  // namespace

std::span<const MinibatchRun> CoreTasks::divide(const StepPlan& step, Assignment assignment,
                                                int threads, std::int64_t at_once) {
  loads_.resize(static_cast<std::size_t>(threads));
  const std::int64_t busiest = divide_evenly(step, assignment, 1, step.minibatches);
  // The leaves of strided cores are not neighbours in the tree.
  const std::int64_t most = assignment == Assignment::contiguous ? at_once / kPartOfPass : 1;
  if (most <= 1) return tasks_;
  for (std::int64_t longest = most; longest > 1; longest /= 2) {
    if (divide_evenly(step, assignment, longest, busiest) <= busiest) return tasks_;
  }
  divide_evenly(step, assignment, 1, busiest);
  return tasks_;
}

// Makes tasks of one core, or of at most `most` minibatches, and gives each to whichever thread has
// least; a run of cores must not give it more than `busiest`. Returns how many minibatches the
// busiest thread has. Runs are powers of two long and begin at multiples of these, as nodes of the
// summation tree do.
std::int64_t CoreTasks::divide_evenly(const StepPlan& step, Assignment assignment,
                                      std::int64_t most, std::int64_t busiest) {
  const std::int64_t cores = busy_cores(step.minibatches, step.cores);
  const auto share_of = [&](std::int64_t core) {
    return step.share_of(CoreRank{core}, assignment);
  };
  tasks_.clear();
  std::ranges::fill(loads_, 0);
  for (std::int64_t core = 0; core < cores;) {
    std::int64_t& least = *std::ranges::min_element(loads_);
    MinibatchRun task = share_of(core);
    std::int64_t end = core + 1;
    for (std::int64_t run = 2; core % run == 0 && end < cores; run *= 2) {
      const std::int64_t longer = std::min(core + run, cores);
      const MinibatchRun last = share_of(longer - 1);
      const std::int64_t count = last.first.value() + last.count - task.first.value();
      if (count > most || least + count > busiest) break;
      task.count = count;
      end = longer;
    }
    tasks_.push_back(task);
    least += task.count;
    core = end;
  }
  return *std::ranges::max_element(loads_);
}

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
  if (block_reducer_ == nullptr) at_once = 1;
  const std::span<const MinibatchRun> tasks =
      tasks_.divide(step, assignment, workers_.threads(), at_once);
  reducer_->begin_step(step.minibatches, busy_cores(step.minibatches, step.cores));
  try {
    workers_.for_each(std::ssize(tasks), [&](std::int64_t i, int thread) {
      run_task(step, assignment, tasks[static_cast<std::size_t>(i)], substep, at_once, thread);
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
    if (sum == nullptr) throw_error("the reducer has no sum of {}; accepted: one", at());
    if (sum->scalars.minibatches != step.minibatches) {
      throw_error(
          "the reducer has the sum of {} minibatches of {}, which has {}; accepted: each of them "
          "once",
          sum->scalars.minibatches, at(), step.minibatches);
    }
    const std::span<const double> squares = sum->squares;
    if (std::find(squares.begin(), squares.end(), PartialSum<T>::kNotTaken) != squares.end()) {
      throw_error(
          "the reducer has a sum of {} whose squares are not taken; accepted: all of them "
          "(Reducer::add())",
          at());
    }
    return sum;
  } catch (...) {
    reducer_->end_step();
    throw;
  }
}

template <class T>
void StepExecutor<T>::run_task(const StepPlan& step, Assignment assignment,
                               const MinibatchRun& share, const Substep& substep,
                               std::int64_t at_once, int thread) {
  ExecutorSeconds& seconds = seconds_[static_cast<std::size_t>(thread)].seconds;
  Stopwatch stopwatch;
  SubstepTask task{.core = {}, .minibatch = {}, .step = &step, .thread = thread};
  Merge merge{.thread = thread, .begin = stopwatch.begun()};
  const auto end_merge = [&] {
    seconds.reduce += stopwatch.lap();
    // Nothing is merged before the first minibatch.
    if (!on_merge_ || !merge.minibatch) return;
    merge.end = stopwatch.begun();
    on_merge_(merge);
  };
  const auto next_block = [&](std::int64_t first, std::int64_t count) {
    PartialSum<T>* const out = reducer_->lease_leaf();
    end_merge();
    task.minibatch = MinibatchIndex{step.first_minibatch.value() + first};
    task.count = count;
    const MinibatchPlace first_place = step.place_of(task.minibatch, assignment);
    const MinibatchIndex last{task.minibatch.value() + count - 1};
    task.core = first_place.core;
    task.substep = first_place.substep;
    task.cores = step.place_of(last, assignment).core.value() - task.core.value() + 1;
    substep(task, *out);
    out->scalars.minibatches = count;
    seconds.compute += stopwatch.lap();
    merge.minibatch = task.minibatch;
    merge.minibatches = count;
    merge.core = task.core;
    merge.cores = task.cores;
    merge.begin = stopwatch.begun();
    return out;
  };
  const LeafShare leaves{.first = share.first.value() - step.first_minibatch.value(),
                         .count = share.count,
                         .stride = share.stride};
  // std::function holds references without an allocation.
  const std::int64_t core = step.place_of(share.first, assignment).core.value();
  if (at_once > 1) {
    block_reducer_->reduce_blocks(core, leaves, at_once, std::ref(next_block));
  } else {
    const auto next = [&next_block](std::int64_t leaf) { return next_block(leaf, 1); };
    reducer_->reduce_core(core, leaves, std::ref(next));
  }
  end_merge();
}

template class StepExecutor<float>;
template class StepExecutor<double>;

namespace {

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

template <class T>
FaultyExecutor<T>::FaultyExecutor(StepExecutor<T>& executor, FaultOptions faults,
                                  std::vector<Straggler> stragglers, Sleep sleep)
    : executor_(executor),
      model_(std::move(faults)),
      stragglers_(std::move(stragglers)),
      sleep_(sleep ? std::move(sleep) : Sleep(sleep_for)) {
  for (const Straggler& straggler : stragglers_) {
    if (straggler.core.value() < 0) throw Error("the core of a straggler counts from 0");
    if (!(straggler.factor >= 1)) {
      throw_error("a straggler of factor {}: accepted are values of at least 1", straggler.factor);
    }
  }
}

template <class T>
StepSum<T> FaultyExecutor<T>::run(StepPlan& step, Assignment assignment, const Substep& substep,
                                  const OnFault& on_fault, std::int64_t at_once) {
  if (!model_.any() && stragglers_.empty()) {
    return executor_.run(step, assignment, substep, at_once);
  }
  for (std::int64_t attempt = 0;; ++attempt) {
    const std::vector<FaultRecord> faults = faults_of(step, assignment, attempt);
    try {
      return run_attempt(step, assignment, substep, faults);
    } catch (const CoreDied&) {
      const auto dead = static_cast<std::int64_t>(faults.size());
      const std::int64_t left = std::max<std::int64_t>(1, step.cores - dead);
      if (on_fault) on_fault(step, faults, left);
      step.cores = left;
    }
  }
}

template <class T>
std::vector<FaultRecord> FaultyExecutor<T>::faults_of(const StepPlan& step, Assignment assignment,
                                                      std::int64_t attempt) const {
  std::vector<FaultRecord> faults;
  if (!model_.any()) return faults;
  for (CoreRank core; core.value() < busy_cores(step.minibatches, step.cores); ++core) {
    const std::int64_t substeps = step.share_of(core, assignment).count;
    if (const auto death = model_.death(step.index, attempt, core, substeps)) {
      faults.push_back({.core = core, .substep = *death});
    }
  }
  return faults;
}

template <class T>
StepSum<T> FaultyExecutor<T>::run_attempt(const StepPlan& step, Assignment assignment,
                                          const Substep& substep,
                                          std::span<const FaultRecord> faults) {
  // Each core counts its own substeps, and no two threads run the same core.
  std::vector<std::int64_t> substeps_left = vector_of(faults, &FaultRecord::substep);
  return executor_.run(step, assignment, [&](const SubstepTask& task, PartialSum<T>& out) {
    for (std::size_t i = 0; i < faults.size(); ++i) {
      if (faults[i].core == task.core && substeps_left[i]-- == 0) throw CoreDied();
    }
    const Stopwatch stopwatch;
    substep(task, out);
    dawdle(task.core, stopwatch.seconds());
  });
}

// Extends a slow core's substep, which took `seconds`, to its intended duration.
template <class T>
void FaultyExecutor<T>::dawdle(CoreRank core, double seconds) const {
  for (const Straggler& straggler : stragglers_) {
    if (straggler.core == core && straggler.factor > 1) sleep_(seconds * (straggler.factor - 1));
  }
}

template class FaultyExecutor<float>;
template class FaultyExecutor<double>;

}  // namespace rubato
