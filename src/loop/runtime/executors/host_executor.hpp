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

/// A FaultyExecutor that does this host's part of a step, and comes to the sum of all hosts'.
///
/// The subtrees of a host are steps of their own, one after the other, each on all of its cores. So
/// a reducer needs to know nothing of hosts.
///
/// T is float or double.
template <class T>
class HostExecutor {
 public:
  using Substep = typename FaultyExecutor<T>::Substep;
  using OnFault = typename FaultyExecutor<T>::OnFault;
  /// Hears of an exchange with the other hosts when it has ended.
  using OnExchange = std::function<void(std::chrono::steady_clock::time_point begin)>;

  /// `executor` outlives it, and so does `hosts`, which may be null: this process alone. The size
  /// is that of the executor's reducer. Throws what HostSum's constructor does.
  HostExecutor(FaultyExecutor<T>& executor, Hosts* hosts, const ReducerSize& size,
               HostTally tally = {}, OnExchange on_exchange = {});

  /// FaultyExecutor::run() of all hosts together. With several, cores must not die.
  [[nodiscard]] StepSum<T> run(StepPlan& step, Assignment assignment, const Substep& substep,
                               const OnFault& on_fault, std::int64_t at_once = 1);

 private:
  // Whether the hosts do it together: not what the others have done before.
  [[nodiscard]] bool is_for_all(const StepPlan& step) const;

  FaultyExecutor<T>& executor_;
  Hosts* hosts_;
  OnExchange on_exchange_;
  // Where there are several hosts.
  std::optional<HostSum<T>> host_sum_;
};

extern template class HostExecutor<float>;
extern template class HostExecutor<double>;

}  // namespace rubato
