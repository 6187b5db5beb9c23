#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/steps/walk.hpp>

#include "loop/train/listeners.hpp"
#include "numbers/scaling/gradient_noise.hpp"
#include "step_engine.hpp"

namespace rubato {

/// Estimates the noise of a training's gradients, for StepRecord::measured_gain and noise_scale,
/// and for the rules and policies that use it.
class NoiseMeter {
 public:
  explicit NoiseMeter(std::size_t groups) : gain_({}, groups) {}

  /// Measures a step that was applied, and completes its record.
  void measure(StepOutcome& outcome, std::int64_t minibatch_size) {
    StepRecord& record = outcome.record;
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

/// Takes the steps of a walk: it has the schedule, the rule, the step engine and the meter of the
/// noise, and records the results.
class StepTaker {
 public:
  /// The arguments must outlive it. Throws Error as make_step_engine() does.
  StepTaker(Objective& objective, Workers& workers, const TrainOptions& options,
            const StepRange& steps);

  /// Takes the step that comes next in `walk`, which does not advance yet. StepSettings explains
  /// `quiet` and `before_change`. Throws whatever the objective throws, and Error for a rate that
  /// cannot be applied.
  [[nodiscard]] StepRecord run(const NextStep& next, const Walk& walk, Training& training,
                               const Listeners& listeners, QuietStretches& quiet,
                               std::function<void()> before_change);

  [[nodiscard]] LrSchedule& schedule() const { return *schedule_; }
  /// Replaces TrainOptions::learning_rate. Throws Error for a rate out of range.
  void set_learning_rate(double rate);
  /// The noise scale in samples, if it is measured.
  [[nodiscard]] std::optional<double> noise_scale() const {
    return options_.log_noise ? noise_.noise_scale() : std::nullopt;
  }
  [[nodiscard]] std::int64_t gradient_buffers() const { return engine_->gradient_buffers(); }
  [[nodiscard]] std::int64_t minibatches_at_once() const { return engine_->minibatches_at_once(); }
  [[nodiscard]] bool shows_others() { return engine_->shows_others(); }
  void exchange_shown(std::string_view weights) { engine_->exchange_shown(weights); }
  /// Visits the state of all parts but those that begin anew.
  void visit_state(StateVisitor& state, const std::set<std::string_view>& forgotten);

  /// The part for Trainer::part_under_way().
  [[nodiscard]] std::string_view part() const { return part_; }
  void enter(std::string_view part) { part_ = part; }

 private:
  const TrainOptions& options_;
  std::unique_ptr<Rule> rule_;
  std::unique_ptr<LrSchedule> schedule_;
  std::unique_ptr<StepEngine> engine_;
  NoiseMeter noise_;
  SampleOrder order_;
  // The learning rate that an observer has set.
  std::optional<double> own_rate_;
  std::string_view part_;
};

}  // namespace rubato
