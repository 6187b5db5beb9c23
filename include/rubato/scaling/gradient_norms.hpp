#pragma once

namespace rubato {

/// What a step's gradients say of one parameter group: the sums of squares that all estimates of
/// gradient noise begin with.
struct GradientNorms {
  /// The mean, over the minibatches of the step, of the squared norm of each one's gradient.
  double minibatch_square = 0;
  /// The squared norm of their mean.
  double mean_square = 0;
};

/// What layer-wise rules see of one parameter tensor.
struct ParameterNorms {
  double weight_square = 0;
  /// Of the step's mean gradient, without weight decay.
  double gradient_square = 0;
  double weight_decay = 0;
};

/// The unbiased estimates that one step's norms give (McCandlish et al. 2018, "An empirical model
/// of large-batch training", appendix A.1; Johnson et al. 2020, "AdaScale SGD", appendix B.3).
struct NoiseEstimate {
  /// Squared norm of the true gradient. May be below 0.
  double signal = 0;
  /// Trace of the covariance of a minibatch's gradient. May be below 0 by rounding only.
  double variance = 0;

  /// From a step of `minibatches` minibatches, at least 2: of one alone nothing can be said of the
  /// variance.
  [[nodiscard]] static constexpr NoiseEstimate of(const GradientNorms& norms, double minibatches) {
    const double variance =
        (norms.minibatch_square - norms.mean_square) * minibatches / (minibatches - 1);
    return {.signal = norms.mean_square - variance / minibatches, .variance = variance};
  }
};

}  // namespace rubato
