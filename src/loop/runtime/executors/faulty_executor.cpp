#include "faulty_executor.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/stopwatch.hpp"

namespace rubato {

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
      throw Error(fmt::format("a straggler of factor {}: accepted are values of at least 1",
                              straggler.factor));
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
  std::vector<std::int64_t> substeps_left;
  substeps_left.reserve(faults.size());
  for (const FaultRecord& fault : faults) substeps_left.push_back(fault.substep);
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
