#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <rubato/loop/faults.hpp>
#include <rubato/steps/plan.hpp>

#include "step_executor.hpp"

namespace rubato {

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
