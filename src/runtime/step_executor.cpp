#include <optional>

#include <rubato/core/check.hpp>
#include <rubato/core/stopwatch.hpp>
#include <rubato/runtime/step_executor.hpp>

namespace rubato {

template <class T>
StepExecutor<T>::StepExecutor(Workers& workers, std::size_t values, std::int64_t max_minibatches)
    : workers_(workers),
      // The sums alive at one time are over disjoint sets of leaves.
      pool_(values, static_cast<std::size_t>(max_minibatches)),
      tree_(max_minibatches),
      seconds_(static_cast<std::size_t>(workers.threads())) {}

template <class T>
StepSum<T> StepExecutor<T>::run(const StepPlan& step, Assignment assignment,
                                const Substep& substep) {
  for (ThreadSeconds& thread : seconds_) thread.seconds = {};
  tree_.begin_step();
  // Written by the one core that completes the sum.
  PartialSum<T>* root = nullptr;
  try {
    workers_.for_each(busy_cores(step.minibatches, step.cores), [&](std::int64_t i, int thread) {
      const CoreRank core{i};
      auto* sum = run_core(step, core, step.share_of(core, assignment), substep, thread);
      if (sum != nullptr) root = sum;
    });
  } catch (...) {
    // Sums are left in the tree and with the cores that were given up; all buffers are taken back.
    pool_.reclaim_all();
    throw;
  }
  RUBATO_CHECK(root != nullptr, "one core of a step completes its sum");
  RUBATO_CHECK(root->scalars.minibatches == step.minibatches,
               "every minibatch of a step is in its sum once");
  StepSeconds seconds;
  for (const ThreadSeconds& thread : seconds_) {
    seconds.compute += thread.seconds.compute;
    seconds.reduce += thread.seconds.reduce;
  }
  return {pool_, root, seconds};
}

template <class T>
PartialSum<T>* StepExecutor<T>::run_core(const StepPlan& step, CoreRank core,
                                         const MinibatchRun& share, const Substep& substep,
                                         int thread) {
  const auto merge = [this](SumId mine, SumId other) {
    *pool_[mine] += *pool_[other];  // into the one that is in this thread's cache
    pool_.release(pool_[other]);
    return mine;
  };
  const SummationTree shape(step.minibatches);
  const std::int64_t first = share.first.value() - step.first_minibatch.value();
  // The leaves of a strided share are no neighbours: each is a run of its own.
  const std::int64_t run_length = share.stride == 1 ? share.count : 1;
  StepSeconds& seconds = seconds_[static_cast<std::size_t>(thread)].seconds;
  Stopwatch stopwatch;
  std::optional<SumId> root;
  for (std::int64_t done = 0; done < share.count; done += run_length) {
    const std::int64_t begin = first + done * share.stride;
    LeafRun<> run(shape, tree_, begin, begin + run_length);
    for (std::int64_t i = 0; i < run_length; ++i) {
      PartialSum<T>* leaf = pool_.acquire();
      seconds.reduce += stopwatch.lap();
      substep(core, share[done + i], thread, *leaf);
      leaf->scalars.minibatches = 1;
      seconds.compute += stopwatch.lap();
      root = run.offer(pool_.id_of(leaf), merge);
      seconds.reduce += stopwatch.lap();
    }
  }
  return root ? pool_[*root] : nullptr;
}

template class StepExecutor<float>;
template class StepExecutor<double>;

}  // namespace rubato
