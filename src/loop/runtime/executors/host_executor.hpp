#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include <rubato/loop/hosts.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/steps/plan.hpp>

#include "faulty_executor.hpp"
#include "loop/runtime/host_sum.hpp"

namespace rubato {

/// A FaultyExecutor that computes this host's part of a step and obtains the sum of all hosts.
///
/// The subtrees of a host are separate steps, one after the other, each on all of its cores. So a
/// reducer does not need to know about hosts.
///
/// T is float or double.
template <class T>
class HostExecutor {
 public:
  using Substep = typename FaultyExecutor<T>::Substep;
  using OnFault = typename FaultyExecutor<T>::OnFault;
  /// Called at the end of an exchange with the other hosts.
  using OnExchange = std::function<void(std::chrono::steady_clock::time_point begin)>;

  /// `executor` and `hosts` must outlive it; null `hosts` means this process alone. The size is
  /// that of the executor's reducer. Throws whatever HostSum's constructor throws.
  HostExecutor(FaultyExecutor<T>& executor, Hosts* hosts, const ReducerSize& size,
               HostTally tally = {}, OnExchange on_exchange = {});

  /// Computes the step as FaultyExecutor::run() does, on all hosts together. With several hosts,
  /// cores must not die.
  [[nodiscard]] StepSum<T> run(StepPlan& step, Assignment assignment, const Substep& substep,
                               const OnFault& on_fault, std::int64_t at_once = 1);

 private:
  // Returns whether the hosts compute the step together; false for steps that the others have
  // already done.
  [[nodiscard]] bool is_for_all(const StepPlan& step) const;

  FaultyExecutor<T>& executor_;
  Hosts* hosts_;
  OnExchange on_exchange_;
  // Empty if there is only one host.
  std::optional<HostSum<T>> host_sum_;
};

extern template class HostExecutor<float>;
extern template class HostExecutor<double>;

}  // namespace rubato
