#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/digest.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>

namespace rubato {

/// The evaluation of a model on a data set.
struct Evaluation {
  std::int64_t samples = 0;
  /// The mean over the samples.
  double loss = 0;
  /// The share of samples whose largest output is their target, from 0 to 1; the share of tokens
  /// (pixels, ...) if each has a target. The target of probabilities of classes is the largest. One
  /// with an output that is NaN is never correct. Empty if targets are neither class indices nor
  /// such probabilities.
  std::optional<double> accuracy{};
  /// The same for the k largest outputs, if asked for (TrainOptions::top_k).
  std::optional<double> top_k_accuracy{};
  /// The mean over samples and outputs of (output - target)^2, if asked for and if targets are real
  /// numbers.
  std::optional<double> mse{};
  /// e to the power of the loss, if asked for and if targets are class indices.
  std::optional<double> perplexity{};
  /// The loss in bits per byte of text, if asked for (TrainOptions::bytes_per_target) and if
  /// targets are class indices.
  std::optional<double> bits_per_byte{};
};

/// The time of a step, by kind of work.
struct StepTiming {
  /// Seconds of all threads together in gathering the samples of the minibatches.
  double data = 0;
  /// Seconds of all threads together in forward and backward of the minibatches.
  double compute = 0;
  /// Seconds of all threads together in summing gradients.
  double reduce = 0;
  /// Seconds from the end of this host's gradients until the sum of all hosts is there: messages,
  /// and waiting for slower hosts. Empty in a run of one host.
  std::optional<double> exchange{};
  /// Seconds from the end of the sum to the end of the step: rule, update, buffers.
  double update = 0;
  /// Seconds from the beginning of the step to its end.
  double wall = 0;
};

/// A minibatch of a step.
struct MinibatchRecord {
  /// The index within the epoch.
  MinibatchIndex minibatch;
  /// The core that computed it in the last attempt.
  CoreRank core;
  std::int64_t substep = 0;
  double loss = 0;
  /// The norm of its gradient.
  double gradient_norm = 0;
};

/// A step that has been taken.
struct StepRecord {
  /// The epoch in which it began.
  EpochIndex epoch;
  StepPlan plan;
  Assignment assignment = Assignment::contiguous;
  /// The batch size relative to the reference batch size.
  double scale = 1;
  double learning_rate = 0;
  /// The number of steps of the reference batch size that the step is worth.
  double gain = 1;
  /// The answers of the rule besides the rate, or of --memory and --on-batch-change.
  OptimizerAnswer optimizer{};
  /// The weight decay of the step, if it is not that of the options.
  std::optional<double> weight_decay{};
  /// Scale-invariant iterations with this step: the sum of the gains of the steps that were
  /// applied.
  double iterations = 0;
  /// The norm of the mean gradient before clipping, if something asks for it.
  std::optional<double> gradient_norm{};
  /// The gradient noise scale in samples, and the gain that AdaScale would give the step; only with
  /// TrainOptions::log_noise.
  std::optional<double> noise_scale{};
  std::optional<double> measured_gain{};
  /// The mean over the samples, or over everything with a weight, before the update; NaN if all
  /// weights are 0.
  double loss = 0;
  /// The sum of the weights over which the loss is the mean (Leaf::weight); empty if the loss has
  /// no weights.
  std::optional<double> weight{};
  /// False if the loss or the gradient is not finite: the parameters are then those before the
  /// step.
  bool applied = true;
  /// The factor of the loss; only with Precision::fp16.
  std::optional<double> loss_scale{};
  /// The step was left out because its gradient overflowed in half precision or because its weight
  /// is 0. A skipped step has a rate and a gain of 0, and is not a divergence.
  bool skipped = false;
  /// The digest of the parameters, the buffers and all that the optimizer, the transforms and the
  /// loss scale remember after the step; empty if it is not computed
  /// (TrainOptions::digest_every), or if training ends here because it diverged.
  std::optional<Digest> digest{};
  /// The reading of the source's clock after this step; empty if it has no clock.
  std::optional<ClockTime> time{};
  /// The numbers behind the source's decision, if it reports any (BatchPolicy).
  std::vector<NamedNumber> decision_inputs{};
  /// The minibatches in ascending order, if they are logged (TrainOptions::log_minibatches).
  std::vector<MinibatchRecord> minibatches{};
  StepTiming seconds;
};

/// The value of one of the user's own metrics (TrainOptions::metrics).
using MetricValue = NamedNumber;

/// The tests of weights that training has beside the model's, by their names: "ema" for the moving
/// averages (TrainOptions::ema_half_life). Without a test, a name may be missing or empty.
using TestsByWeights = std::map<std::string, std::optional<Evaluation>, std::less<>>;

/// An epoch that has been trained.
struct EpochRecord {
  EpochIndex epoch;
  /// False if training was stopped, or the trace ended, before the end of the epoch.
  bool whole = true;
  /// The number of steps that began in it.
  std::int64_t steps = 0;
  /// The samples of this epoch; samples that a step takes from the next epoch count there
  /// (Remainder::carry).
  std::int64_t samples = 0;
  /// The mean over the samples of the losses of their steps, each before its update.
  double train_loss = 0;
  /// The evaluation on the test set, if there is one.
  std::optional<Evaluation> test;
  /// The same of weights beside the model's, with the model's own buffers.
  TestsByWeights other_tests{};
  /// The user's own metrics that have a value, in their order.
  std::vector<MetricValue> metrics{};
  /// The reading of the source's clock after the epoch's last step, as in TrainResult::time.
  std::optional<ClockTime> time{};
  /// Seconds in the training steps, and in the evaluation after them.
  double train_seconds = 0;
  double test_seconds = 0;
};

/// The result of training.
struct TrainResult {
  /// The number of whole epochs.
  std::int64_t epochs = 0;
  /// The part of an incomplete epoch that was trained after them.
  std::optional<EpochPart> part{};
  /// The totals of the whole training.
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// Steps that were left out (StepRecord::skipped).
  std::int64_t skipped_steps = 0;
  /// Seconds in the steps, with their observers.
  double train_seconds = 0;
  /// The evaluation after the last epoch, whole or not, if there is a test set.
  std::optional<Evaluation> final_test;
  /// The same of weights beside the model's.
  TestsByWeights final_other_tests{};
  /// The best over all epochs.
  std::optional<double> best_test_accuracy;
  /// Scale-invariant iterations.
  double iterations = 0;
  /// The digests of all steps (StepRecord::digest), chained; empty if there are none, or if
  /// training continues from a state that does not know those before it.
  std::optional<Digest> digest{};
  /// The clock after the last step, if the source has one, or when it ended training
  /// (StepSource::end()).
  std::optional<ClockTime> time{};
  /// The reason why training ended before its epochs without an error (Training::stop(), the end of
  /// the trace, a budget reached); empty if it did not.
  std::string stopped;
  /// True if the reason was a lack of devices (SourceEnd::Cause::out_of_devices).
  bool out_of_devices = false;
};

}  // namespace rubato
