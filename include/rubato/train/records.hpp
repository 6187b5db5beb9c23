#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <rubato/plan/plan.hpp>

namespace rubato {

/// What a model does on a data set.
struct Evaluation {
  std::int64_t samples = 0;
  /// Mean over the samples.
  double loss = 0;
  /// Share of samples whose largest output is their target, 0 to 1; empty where targets are no
  /// class indices.
  std::optional<double> accuracy;
};

/// Where the time of a step went.
struct StepTiming {
  /// Seconds of all threads together in gathering the samples of the minibatches.
  double data = 0;
  /// Seconds of all threads together in forward and backward of the minibatches.
  double compute = 0;
  /// Seconds of all threads together in summing gradients.
  double reduce = 0;
  /// Seconds from the end of the sum to the end of the step: rule, update, buffers.
  double update = 0;
  /// Seconds from the beginning of the step to its end.
  double wall = 0;
};

/// A step that has been taken.
struct StepRecord {
  EpochIndex epoch;
  StepPlan plan;
  Assignment assignment = Assignment::contiguous;
  /// Batch size relative to the reference batch size.
  double scale = 1;
  double learning_rate = 0;
  /// Mean over the minibatches, before the update.
  double loss = 0;
  /// False where the loss or the gradient is not finite: the parameters are as before the step.
  bool applied = true;
  StepTiming seconds;
};

/// An epoch that has been trained.
struct EpochRecord {
  EpochIndex epoch;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// Mean over the minibatches, each before its step's update.
  double train_loss = 0;
  /// Where there is a test set.
  std::optional<Evaluation> test;
  /// Seconds in the training steps, and in the evaluation after them.
  double train_seconds = 0;
  double test_seconds = 0;
};

/// What training came to.
struct TrainResult {
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// In the steps, with their observers.
  double train_seconds = 0;
  /// After the last complete epoch, where there is a test set.
  std::optional<Evaluation> final_test;
  /// Over all epochs.
  std::optional<double> best_test_accuracy;
};

/// Hears what a trainer does. All calls come from the thread that called Trainer::fit(), between
/// steps; what they do is part of the step's wall time.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual void on_epoch_begin(const EpochPlan& epoch) { static_cast<void>(epoch); }
  virtual void on_step(const StepRecord& step) { static_cast<void>(step); }
  virtual void on_epoch(const EpochRecord& epoch) { static_cast<void>(epoch); }
};

}  // namespace rubato
