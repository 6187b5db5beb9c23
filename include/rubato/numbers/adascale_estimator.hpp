#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

/// The weights of the first values of a moving average.
enum class Averaging {
  /// avg = sum of (1 - smoothing) smoothing^k x_(t-k), divided by the sum of those weights.
  debiased,
  /// The plain mean of the first 1 / (1 - smoothing) values, and after them avg = smoothing avg +
  /// (1 - smoothing) x (Johnson et al. 2020, appendix B.3).
  mean_first,
};

/// A moving average whose smoothing may change from value to value.
class MovingAverage {
 public:
  /// Adds a value; `smoothing` is in [0, 1).
  void add(double value, double smoothing, Averaging averaging);
  [[nodiscard]] double value() const { return state_.value; }
  /// Changes the average as if every value had been multiplied by `factor`.
  void rescale(double factor) {
    state_.value *= factor;
    state_.biased *= factor;
    state_.total *= factor;
  }

  /// Visits the whole state.
  void visit_state(NumberVisitor& numbers) {
    visit_debiased(numbers);
    numbers.number(state_.total);
    numbers.number(state_.count);
  }
  /// Visits the whole state of an average that only uses Averaging::debiased.
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
  /// The smoothing of the averages, in [0, 1); by default max(1 - N / 1000, 0) for a step of N
  /// minibatches.
  std::optional<double> smoothing{};
  Averaging averaging = Averaging::debiased;
  /// True multiplies the average variance by old scale / new scale when the scale changes, as
  /// fairscale does; that biases the gain until the average has recovered. By default it is
  /// unchanged, as in the paper, in which sigma^2 belongs to scale 1.
  bool rescale_variance = false;
  /// The lower bound of a variance. Empty stands for a millionth of the mean squared gradient of
  /// the step's minibatches, below which a variance cannot be told from rounding errors; being
  /// relative, it leaves gains unchanged when all gradients are multiplied by a number. fairscale
  /// uses 1e-6 for all gradients: if they are small, the gain becomes the scale.
  std::optional<double> smallest_variance{};
};

/// The statistics of AdaScale for each parameter group (Johnson et al. 2020, "AdaScale SGD: a
/// user-friendly algorithm for distributed training", section 3 and appendix B.3):
///
///     sigma^2 = variance of the gradient of a batch of scale 1      (average over the steps)
///     mu^2    = squared norm of the true gradient                   (average over the steps)
///     gain r  = (sigma^2 + mu^2) / (sigma^2 / S + mu^2)             1 <= r <= S for S >= 1
///
/// S, the scale, is the batch size relative to the one for which the learning rate was tuned; a
/// step of scale S at r times that rate is worth r steps of scale 1.
class AdaScaleEstimator {
 public:
  explicit AdaScaleEstimator(const AdaScaleOptions& options = {}, std::size_t groups = 1);

  /// Adds the norms of a step of scale `scale` > 0, one element for each group. A step of one
  /// minibatch carries no information about the variance and changes nothing; see
  /// update_from_pair(). A step with a norm that is not finite changes nothing, either, and is
  /// counted.
  void update(std::span<const GradientNorms> groups, std::int64_t minibatches, double scale);

  /// Adds a step of one minibatch and scale `scale` that follows another such step. With g the
  /// gradient of this step and p that of the step before, the norms are those of the two as if they
  /// were the minibatches of one step:
  ///
  ///     minibatch_square = (|g|^2 + |p|^2) / 2,    mean_square = |(g + p) / 2|^2
  ///
  /// so that the variance of a minibatch's gradient is estimated by |g - p|^2 / 2, and that of a
  /// batch of scale 1 by `scale` times that (as in AdaptDL and Pollux, Qiao et al. 2021, for one
  /// replica). The change by the update between the two counts as noise: the estimate is biased
  /// upwards, a little if the rate is small.
  void update_from_pair(std::span<const GradientNorms> groups, double scale);

  /// Applies AdaScaleOptions::rescale_variance; to be called before the first step of a new scale.
  void change_scale(double from, double to);
  void rescale_variance(double factor);
  void set_smoothing(std::optional<double> smoothing) { options_.smoothing = smoothing; }
  /// The smoothing that was set; empty if it depends on the minibatches.
  [[nodiscard]] std::optional<double> fixed_smoothing() const { return options_.smoothing; }
  void add_group();

  /// The gain of all groups together, or of one group: min(1, S) while nothing has been measured,
  /// or only gradients of 0.
  [[nodiscard]] double gain(double scale) const;
  [[nodiscard]] double gain(double scale, std::size_t group) const;

  [[nodiscard]] std::size_t groups() const { return averages_.size(); }
  /// Average mu^2 and sigma^2 of a group.
  [[nodiscard]] double squared_gradient(std::size_t group) const;
  [[nodiscard]] double variance(std::size_t group) const;
  /// Steps left out because a norm was infinite or NaN.
  [[nodiscard]] std::int64_t skipped() const { return skipped_; }
  /// True once there are measurements to estimate a gain from.
  [[nodiscard]] bool measured() const { return measured_; }

  /// The smoothing of a step of `minibatches` minibatches.
  [[nodiscard]] double smoothing(std::int64_t minibatches) const;

  /// Visits the whole state; the number of groups must be the same when loading.
  void visit_state(NumberVisitor& numbers);

 private:
  struct Averages {
    MovingAverage signal;
    MovingAverage variance;
  };

  // Adds norms of `count` gradients that together have the scale `scale`.
  void take_in(std::span<const GradientNorms> groups, double count, double scale, double smoothing);

  AdaScaleOptions options_;
  std::vector<Averages> averages_;
  bool measured_ = false;
  std::int64_t skipped_ = 0;
};

}  // namespace rubato
