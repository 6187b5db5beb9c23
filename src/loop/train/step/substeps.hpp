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

/// What the minibatches of a step have in common.
struct StepOfMinibatches {
  const StepPlan& plan;
  const SampleOrder& samples;
  EpochIndex epoch{};
  double loss_scale = 1;
};

/// Computes the minibatches of a step on the objective's evaluators, and keeps what is to be known
/// of each.
///
/// T is float or double.
template <class T>
class Substeps {
 public:
  /// All of them outlive it. At most so many minibatches come at once. Throws Error where the
  /// objective makes no evaluator.
  Substeps(ObjectiveOf<T>& objective, const TrainOptions& options, const Workers& workers,
           std::int64_t at_once);

  /// Before the step is begun.
  void begin_step(const StepPlan& step);
  /// Before each attempt at it.
  void begin_attempt();
  /// The gradient, what is averaged behind it, and the loss of the task's minibatch, or the sums of
  /// its minibatches, into `out`, the buffer of that number; gradient and loss as parts of a sum
  /// over the step that is divided by StepPlan::size_in_minibatches(), or where the loss has
  /// weights by their sum. By several threads at once.
  /// Throws TrainingError for what the evaluator throws.
  void compute(const StepOfMinibatches& step, const SubstepTask& task, std::int64_t buffer,
               PartialSum<T>& out);

  /// Of the last attempt, in all threads.
  [[nodiscard]] double data_seconds() const;
  /// In ascending order, with who has computed them in the end; empty where they are not logged.
  [[nodiscard]] std::span<const MinibatchRecord> records(const StepPlan& done);

 private:
  // One for each thread, on lines of its own.
  struct alignas(128) Seconds {
    double value = 0;
  };
  struct alignas(128) AtOnce {
    std::vector<Minibatch> minibatches{};
    std::vector<double> losses{};
  };

  [[nodiscard]] Minibatch minibatch_of(const StepOfMinibatches& step, const SubstepTask& task,
                                       std::int64_t which) const;
  // The sum of the losses.
  [[nodiscard]] double evaluate_several(const StepOfMinibatches& step, const SubstepTask& task,
                                        const Leaf<T>& leaf, EvaluatorProgress& progress);

  // A minibatch that has fewer samples than the others counts for fewer.
  void weigh(std::int64_t samples, PartialSum<T>& out) const;
  // The evaluator for what comes in that turn of all on that thread.
  [[nodiscard]] Evaluator<T>& pick(int thread, std::int64_t turn);

  const TrainOptions& options_;
  std::size_t parameters_;
  // One for each thread; with Dealing::in_turns one for each that there would be.
  std::vector<std::unique_ptr<Evaluator<T>>> evaluators_;
  std::vector<Seconds> data_seconds_;
  // By thread: what it computes in one pass. Empty unless several come at once.
  std::vector<AtOnce> at_once_;
  MinibatchLog log_;
};

extern template class Substeps<float>;
extern template class Substeps<double>;

}  // namespace rubato
