#pragma once

#include <cstdint>
#include <string>

#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/steps/batch_policy.hpp>

#include "batch_bounds.hpp"

namespace rubato {

struct NoiseScalePolicyOptions {
  /// Of the noise scale; above 0.
  double factor = 1;
  /// Of the average, from 0 to below 1.
  double smoothing = 0.9;
  /// How far the target may move from the batch before that follows, as a share of it; at least 0.
  double change = 0.2;
  /// Steps that a batch stays at least; at least 1.
  std::int64_t every = 1;
  /// Steps with a noise scale before it is followed; at least 0.
  std::int64_t wait = 10;
};

/// The batch follows the gradient noise scale B (McCandlish et al. 2018, "An empirical model of
/// large-batch training", section 2.2: a batch of the noise scale needs twice the fewest steps and
/// twice the fewest samples):
///
///     target = factor exp(mean of log B over the steps, the last weighing most)
///
/// between the bounds. The mean is of logarithms because B is a ratio, which at times is many times
/// too large. The batch is the target, to the nearest minibatch, once it has left
///
///     batch / (1 + change)  to  batch (1 + change)
///
/// and the batch has stayed for `every` steps. Before there have been `wait` noise scales, what is
/// offered is taken, within the bounds.
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
  // In samples, between the bounds; requires that there has been a noise scale.
  [[nodiscard]] double target() const;
  [[nodiscard]] std::int64_t minibatches(const TraceStep& offered) const;

  BatchBounds bounds_;
  NoiseScalePolicyOptions options_;
  // Of the logarithm of the noise scale, of so many steps.
  MovingAverage log_noise_;
  std::int64_t measured_ = 0;
  // Minibatches of the last step, 0 before the first, and for how many steps there were as many.
  std::int64_t last_ = 0;
  std::int64_t stayed_ = 0;
};

}  // namespace rubato
