#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

/// The simple gradient noise scale (McCandlish et al. 2018, "An empirical model of large-batch
/// training", section 2.2 and appendix A.1), in samples:
///
///     B_noise = tr(Sigma) / |G|^2
///
/// where Sigma is the covariance of a sample's gradient and G the true gradient; both are averaged
/// over the steps before the division. Batches far below it scale almost linearly, batches far
/// above it gain almost nothing.
class NoiseScale {
 public:
  /// Uses `smoothing`, in [0, 1), for the averages.
  explicit NoiseScale(double smoothing = 0.95) : smoothing_(smoothing) {}

  /// Adds the norms of a step, summed over all groups. A step of a single minibatch, or with a norm
  /// that is not finite, is ignored.
  void update(std::span<const GradientNorms> groups, std::int64_t minibatches,
              std::int64_t minibatch_size);

  /// The noise scale; empty while nothing has been measured, or while the estimate of |G|^2 is not
  /// above 0.
  [[nodiscard]] std::optional<double> value() const;

  void visit_state(NumberVisitor& numbers);

 private:
  double smoothing_;
  MovingAverage signal_;
  MovingAverage variance_;
};

}  // namespace rubato
