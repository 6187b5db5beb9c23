#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/sums.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>

#include "loop/runtime/executors/step_executor.hpp"
#include "loop/train/observers/minibatch_log.hpp"

namespace rubato {

/// The data that the minibatches of a step share.
struct StepOfMinibatches {
  const StepPlan& plan;
  const SampleOrder& samples;
  EpochIndex epoch{};
  double loss_scale = 1;
};

/// Computes the minibatches of a step with the objective's evaluators, and logs each of them.
///
/// T is float or double.
template <class T>
class Substeps {
 public:
  /// All arguments must outlive it. At most `at_once` minibatches are computed in one pass. Throws
  /// Error if the objective makes no evaluator.
  Substeps(ObjectiveOf<T>& objective, const TrainOptions& options, const Workers& workers,
           std::int64_t at_once);

  /// Called before the step begins.
  void begin_step(const StepPlan& step);
  /// Called before each attempt at the step.
  void begin_attempt();
  /// Writes the gradient, the averaged values after it, and the loss of the task's minibatch, or
  /// the sums over its minibatches, to `out`, the buffer with number `buffer`. Gradient and loss
  /// are parts of a sum over the step, which is divided by StepPlan::size_in_minibatches() or, if
  /// the loss has weights, by their sum. May be called by several threads at once. Throws
  /// TrainingError for exceptions of the evaluator.
  void compute(const StepOfMinibatches& step, const SubstepTask& task, std::int64_t buffer,
               PartialSum<T>& out);

  /// The seconds spent on data in the last attempt, summed over all threads.
  [[nodiscard]] double data_seconds() const;
  /// The minibatches in ascending order, each with the core that finally computed it; empty if they
  /// are not logged.
  [[nodiscard]] std::span<const MinibatchRecord> records(const StepPlan& done);

 private:
  // The seconds of a thread, on a cache line of its own.
  struct alignas(128) Seconds {
    double value = 0;
  };
  struct alignas(128) AtOnce {
    std::vector<Minibatch> minibatches{};
    std::vector<double> losses{};
  };

  [[nodiscard]] Minibatch minibatch_of(const StepOfMinibatches& step, const SubstepTask& task,
                                       std::int64_t which) const;
  // Returns the sum of the losses.
  [[nodiscard]] double evaluate_several(const StepOfMinibatches& step, const SubstepTask& task,
                                        const Leaf<T>& leaf, EvaluatorProgress& progress);

  // Weights a minibatch with fewer samples than the others accordingly.
  void weigh(std::int64_t samples, PartialSum<T>& out) const;
  // Returns the evaluator for turn number `turn` of those on that thread.
  [[nodiscard]] Evaluator<T>& pick(int thread, std::int64_t turn);

  const TrainOptions& options_;
  std::size_t parameters_;
  // The evaluators, one for each thread; with Dealing::in_turns, one for each thread that there
  // would be.
  std::vector<std::unique_ptr<Evaluator<T>>> evaluators_;
  std::vector<Seconds> data_seconds_;
  // The minibatches that each thread computes in one pass. Empty unless there are several.
  std::vector<AtOnce> at_once_;
  MinibatchLog log_;
};

extern template class Substeps<float>;
extern template class Substeps<double>;

}  // namespace rubato
