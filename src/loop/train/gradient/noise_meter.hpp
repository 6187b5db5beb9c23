#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <rubato/base/state.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/numbers/adascale_estimator.hpp>

#include "loop/train/step/step_engine.hpp"
#include "numbers/scaling/noise_scale.hpp"

namespace rubato {

/// Estimates the noise of a training's gradients, for StepRecord::measured_gain and noise_scale,
/// and for the rules and policies that use it.
class NoiseMeter {
 public:
  explicit NoiseMeter(std::size_t groups) : gain_({}, groups) {}

  /// Measures a step that was applied, and completes its record.
  void measure(const StepOutcome& outcome, std::int64_t minibatch_size, StepRecord& record) {
    // Gradients of fewer samples have more noise.
    const bool alike = record.plan.batch_size % minibatch_size == 0;
    const std::int64_t minibatches = alike ? record.plan.minibatches : 1;
    if (outcome.from_pair) {
      gain_.update_from_pair(outcome.groups, record.scale);
    } else {
      gain_.update(outcome.groups, minibatches, record.scale);
    }
    noise_scale_.update(outcome.groups, outcome.from_pair ? 2 : minibatches, minibatch_size);
    if (gain_.measured()) record.measured_gain = gain_.gain(record.scale);
    record.noise_scale = noise_scale();
  }

  /// The noise scale in samples; empty while too few steps have been measured.
  [[nodiscard]] std::optional<double> noise_scale() const { return noise_scale_.value(); }

  void visit_state(StateVisitor& state) {
    state.numbers("gain_estimator", gain_, "AdaScale");
    state.numbers("noise_scale", noise_scale_, "the noise scale");
  }

 private:
  AdaScaleEstimator gain_;
  NoiseScale noise_scale_;
};

}  // namespace rubato
