#pragma once

#include <cstdint>
#include <string>

#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/steps/batch_policy.hpp>

#include "batch_bounds.hpp"

namespace rubato {

struct NoiseScalePolicyOptions {
  /// The factor on the noise scale; above 0.
  double factor = 1;
  /// The smoothing of the average, from 0 to below 1.
  double smoothing = 0.9;
  /// The relative distance of the target from the batch before the batch follows; at least 0.
  double change = 0.2;
  /// The least number of steps for which a batch is kept; at least 1.
  std::int64_t every = 1;
  /// Steps with a noise scale before the batch follows it; at least 0.
  std::int64_t wait = 10;
};

/// The batch follows the gradient noise scale B (McCandlish et al. 2018, "An empirical model of
/// large-batch training", section 2.2: a batch of the noise scale needs twice the minimal number of
/// steps and twice the minimal number of samples):
///
///     target = factor exp(mean of log B over the steps, the last weighing most)
///
/// between the bounds. The mean is of logarithms because B is a ratio, which is occasionally many
/// times too large. The batch becomes the target, rounded to the nearest minibatch, once the target
/// has left
///
///     batch / (1 + change)  to  batch (1 + change)
///
/// and the batch has been kept for `every` steps. Before there have been `wait` noise scales, the
/// offered batch is taken, within the bounds.
class NoiseScalePolicy final : public BatchPolicy {
 public:
  NoiseScalePolicy(const BatchBounds& bounds, const NoiseScalePolicyOptions& options)
      : bounds_(bounds), options_(options) {}

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& progress) const override;
  void observe(const ObservedStep& step) override;
  [[nodiscard]] std::int64_t max_batch(std::int64_t /*offered*/) const override {
    return bounds_.max_batch();
  }
  [[nodiscard]] bool needs_noise_scale() const override { return true; }
  void visit_state(StateVisitor& state) override;

 private:
  // The target in samples, between the bounds; requires at least one noise scale.
  [[nodiscard]] double target() const;
  [[nodiscard]] std::int64_t minibatches(const TraceStep& offered) const;

  BatchBounds bounds_;
  NoiseScalePolicyOptions options_;
  // The average of the logarithm of the noise scale, and the number of steps in it.
  MovingAverage log_noise_;
  std::int64_t measured_ = 0;
  // Minibatches of the last step, 0 before the first, and the number of consecutive steps with as
  // many.
  std::int64_t last_ = 0;
  std::int64_t stayed_ = 0;
};

}  // namespace rubato
