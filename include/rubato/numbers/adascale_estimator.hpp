#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

/// How the first values of a moving average weigh.
enum class Averaging {
  /// avg = sum of (1 - smoothing) smoothing^k x_(t-k), divided by the sum of those weights.
  debiased,
  /// The plain mean of the first 1 / (1 - smoothing) values, from there on
  /// avg = smoothing avg + (1 - smoothing) x (Johnson et al. 2020, appendix B.3).
  mean_first,
};

/// A moving average whose smoothing may change from value to value.
class MovingAverage {
 public:
  /// `smoothing` is in [0, 1).
  void add(double value, double smoothing, Averaging averaging);
  [[nodiscard]] double value() const { return state_.value; }
  /// As if every value had been multiplied by `factor`.
  void rescale(double factor) {
    state_.value *= factor;
    state_.biased *= factor;
    state_.total *= factor;
  }

  /// All that it knows.
  void visit_state(NumberVisitor& numbers) {
    visit_debiased(numbers);
    numbers.number(state_.total);
    numbers.number(state_.count);
  }
  /// All that it knows where every value was added by Averaging::debiased.
  void visit_debiased(NumberVisitor& numbers) {
    numbers.number(state_.value);
    numbers.number(state_.biased);
    numbers.number(state_.weight);
  }

 private:
  struct State {
    double value = 0;
    double biased = 0;
    double weight = 0;
    double total = 0;
    double count = 0;
  };
  State state_;
};

struct AdaScaleOptions {
  /// Of the averages, in [0, 1); by default max(1 - N / 1000, 0) for a step of N minibatches.
  std::optional<double> smoothing{};
  Averaging averaging = Averaging::debiased;
  /// What becomes of the average variance when the scale changes. In the paper sigma^2 belongs to
  /// scale 1, and stays (the default). fairscale multiplies it by old scale / new scale, which
  /// biases the gain until the average has recovered; true does as fairscale.
  bool rescale_variance = false;
  /// A variance below it counts as this much. Empty is a millionth of the mean squared gradient of
  /// the step's minibatches, below which a variance cannot be told from rounding errors; relative
  /// to what is measured, it leaves gains as they are when all gradients are multiplied by a
  /// number. fairscale has 1e-6, whatever the gradients are: with small ones the gain becomes the
  /// scale.
  std::optional<double> smallest_variance{};
};

/// The statistics of AdaScale, of each parameter group (Johnson et al. 2020, "AdaScale SGD: a
/// user-friendly algorithm for distributed training", section 3 and appendix B.3):
///
///     sigma^2 = variance of the gradient of a batch of scale 1      (average over the steps)
///     mu^2    = squared norm of the true gradient                   (average over the steps)
///     gain r  = (sigma^2 + mu^2) / (sigma^2 / S + mu^2)             1 <= r <= S for S >= 1
///
/// S, the scale, is the batch size relative to that for which the learning rate was tuned; a step
/// of scale S at r times that rate is worth r steps of scale 1.
class AdaScaleEstimator {
 public:
  explicit AdaScaleEstimator(const AdaScaleOptions& options = {}, std::size_t groups = 1);

  /// Takes in what a step of scale `scale` > 0 measured, an element for each group. A step of one
  /// minibatch says nothing of the variance and changes nothing; see update_from_pair(). One with a
  /// norm that is not finite changes nothing either and is counted.
  void update(std::span<const GradientNorms> groups, std::int64_t minibatches, double scale);

  /// Takes in a step of one minibatch and scale `scale` after another such: g is its gradient, p
  /// the gradient of the step before, and the norms are those of the two as if they were the
  /// minibatches of one step:
  ///
  ///     minibatch_square = (|g|^2 + |p|^2) / 2,    mean_square = |(g + p) / 2|^2
  ///
  /// so that the variance of a minibatch's gradient is estimated by |g - p|^2 / 2, and that of a
  /// batch of scale 1 by `scale` times that (AdaptDL and Pollux, Qiao et al. 2021, do so for one
  /// replica). What the update between the two changed is counted as noise: the estimate is biased
  /// upwards, by little where the rate is small.
  void update_from_pair(std::span<const GradientNorms> groups, double scale);

  /// Before the first step of a new scale: does what AdaScaleOptions::rescale_variance says.
  void change_scale(double from, double to);
  void rescale_variance(double factor);
  void set_smoothing(std::optional<double> smoothing) { options_.smoothing = smoothing; }
  /// The smoothing that was set; empty where it follows the minibatches.
  [[nodiscard]] std::optional<double> fixed_smoothing() const { return options_.smoothing; }
  void add_group();

  /// The gain of all groups together, or of one. While nothing has been measured, or only gradients
  /// of 0, it is min(1, S).
  [[nodiscard]] double gain(double scale) const;
  [[nodiscard]] double gain(double scale, std::size_t group) const;

  [[nodiscard]] std::size_t groups() const { return averages_.size(); }
  /// Average mu^2 and sigma^2 of a group.
  [[nodiscard]] double squared_gradient(std::size_t group) const;
  [[nodiscard]] double variance(std::size_t group) const;
  /// Steps left out because a norm was infinite or NaN.
  [[nodiscard]] std::int64_t skipped() const { return skipped_; }
  /// Whether there is anything to estimate a gain from.
  [[nodiscard]] bool measured() const { return measured_; }

  /// The smoothing of a step of that many minibatches.
  [[nodiscard]] double smoothing(std::int64_t minibatches) const;

  /// All that it knows, of so many groups.
  void visit_state(NumberVisitor& numbers);

 private:
  struct Averages {
    MovingAverage signal;
    MovingAverage variance;
  };

  // Norms of `count` gradients, together of scale `scale`.
  void take_in(std::span<const GradientNorms> groups, double count, double scale, double smoothing);

  AdaScaleOptions options_;
  std::vector<Averages> averages_;
  bool measured_ = false;
  std::int64_t skipped_ = 0;
};

}  // namespace rubato
