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

#include "loop/runtime/step_executor.hpp"

namespace rubato {

/// Records of the minibatches of a step. Each minibatch has its own place, so several threads may
/// call note() at once.
class MinibatchLog {
 public:
  void begin(const StepPlan& step) {
    first_ = step.first_minibatch;
    records_.assign(static_cast<std::size_t>(step.minibatches), {});
  }

  void note(MinibatchIndex minibatch, double loss, double gradient_norm) {
    records_[static_cast<std::size_t>(minibatch.value() - first_.value())] = {
        .minibatch = minibatch, .core = {}, .loss = loss, .gradient_norm = gradient_norm};
  }

  /// The minibatches in ascending order, each with the core that finally computed it.
  [[nodiscard]] std::span<const MinibatchRecord> records(const StepPlan& done,
                                                         Assignment assignment) {
    for (CoreRank core; core.value() < done.cores; ++core) {
      const MinibatchRun share = done.share_of(core, assignment);
      for (std::int64_t substep = 0; substep < share.count; ++substep) {
        const std::int64_t place = share[substep].value() - first_.value();
        MinibatchRecord& record = records_[static_cast<std::size_t>(place)];
        record.core = core;
        record.substep = substep;
      }
    }
    return records_;
  }

 private:
  MinibatchIndex first_;
  std::vector<MinibatchRecord> records_;
};

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
  struct Leaves {
    /// The largest number of minibatches that are computed in one pass.
    std::int64_t at_once = 1;
    /// True if the squares of the gradient follow the averaged values; `at_once` is then 1.
    bool squares = false;
  };

  /// The objective, options and workers must outlive it. Throws Error if the objective makes no
  /// evaluator.
  Substeps(ObjectiveOf<T>& objective, const TrainOptions& options, const Workers& workers,
           const Leaves& leaves);

  /// Called before the step begins.
  void begin_step(const StepPlan& step);
  /// Called before each attempt at the step.
  void begin_attempt();
  /// Writes the gradient, the averaged values after it, and the loss of the task's minibatch, or
  /// the sums over its minibatches, to `out`, the buffer with number `buffer`. Gradient,
  /// squares and loss are parts of a sum over the step, which is divided by
  /// StepPlan::size_in_minibatches() or, if the loss has weights, by their sum. May be called by
  /// several threads at once. Throws TrainingError for exceptions of the evaluator.
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

  // Weights a minibatch with fewer samples than the others accordingly, and returns its weight.
  double weigh(std::int64_t samples, PartialSum<T>& out) const;
  // Writes the squares of a gradient that has been multiplied by `weight`, times that weight.
  void square(double weight, PartialSum<T>& out) const;
  // Returns the evaluator for turn number `turn` of those on that thread.
  [[nodiscard]] Evaluator<T>& pick(int thread, std::int64_t turn);

  const TrainOptions& options_;
  std::size_t parameters_;
  std::size_t averaged_;
  bool squares_;
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
