#include "host_executor.hpp"

#include <utility>

#include "base/core/system/stopwatch.hpp"

namespace rubato {

template <class T>
HostExecutor<T>::HostExecutor(FaultyExecutor<T>& executor, Hosts* hosts, const ReducerSize& size,
                              HostTally tally, OnExchange on_exchange)
    : executor_(executor), hosts_(hosts), on_exchange_(std::move(on_exchange)) {
  if (!are_several(hosts)) return;
  host_sum_.emplace(*hosts, size.values, size.norms, std::move(tally));
}

template <class T>
bool HostExecutor<T>::is_for_all(const StepPlan& step) const {
  return host_sum_ && step.index.value() >= hosts_->steps_done();
}

template <class T>
StepSum<T> HostExecutor<T>::run(StepPlan& step, Assignment assignment, const Substep& substep,
                                const OnFault& on_fault, std::int64_t at_once) {
  if (!is_for_all(step)) return executor_.run(step, assignment, substep, on_fault, at_once);
  const SummationTree tree(step.minibatches);
  ExecutorSeconds seconds;
  std::size_t place = 0;
  const StepSize size{
      .leaves = step.minibatches, .cores = step.cores, .host_cores = step.host_cores};
  for (const TreeNode root : host_sum_->begin_step(size)) {
    const auto [first, end] = tree.leaves_below(root);
    StepPlan part = step;
    part.first_minibatch = MinibatchIndex{step.first_minibatch.value() + first};
    part.minibatches = end - first;
    part.cores = host_sum_->cores();
    const StepSum<T> sum = executor_.run(part, assignment, substep, on_fault, at_once);
    seconds.compute += sum.seconds().compute;
    seconds.reduce += sum.seconds().reduce;
    host_sum_->put(place++, sum);
  }
  const Stopwatch exchange;
  StepSum<T> sum = host_sum_->finish_step(seconds);
  if (on_exchange_) on_exchange_(exchange.begun());
  return sum;
}

template class HostExecutor<float>;
template class HostExecutor<double>;

}  // namespace rubato
